# SPDX-License-Identifier: MIT
# The ways to use the library, given deepjit::deepjit and deepjit::static.
set(here ${CMAKE_CURRENT_LIST_DIR})
add_executable(uses_shared ${here}/main.c ${here}/consumer.c)
target_link_libraries(uses_shared PRIVATE deepjit::deepjit)

add_executable(uses_static ${here}/main.c ${here}/consumer.c)
target_link_libraries(uses_static PRIVATE deepjit::static)

add_library(embeds SHARED ${here}/consumer.c)
target_link_libraries(embeds PRIVATE deepjit::static)
add_executable(uses_embedder ${here}/main.c)
target_link_libraries(uses_embedder PRIVATE embeds)
