# SPDX-License-Identifier: MIT
# How every C file of this project is compiled. Set on targets, never globally, so that a project
# that adds us by add_subdirectory keeps its own settings.
add_library(deepjit_settings INTERFACE)
target_compile_definitions(deepjit_settings INTERFACE _GNU_SOURCE)
target_compile_options(deepjit_settings INTERFACE
    -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion
    -Wno-sign-conversion -Wvla $<$<BOOL:${DEEPJIT_WERROR}>:-Werror>)

if(DEEPJIT_SANITIZE)
    target_compile_options(deepjit_settings INTERFACE
        -fsanitize=${DEEPJIT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(deepjit_settings INTERFACE -fsanitize=${DEEPJIT_SANITIZE})
endif()

function(deepjit_settings target)
    set_target_properties(${target} PROPERTIES
        C_STANDARD 17 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF C_VISIBILITY_PRESET hidden)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:deepjit_settings>)
endfunction()
