# SPDX-License-Identifier: MIT
# The command. It carries the library in itself, so that it can be copied anywhere.
file(GLOB deepjit_cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/*.c)
pkg_check_modules(DEEPJIT_JANSSON REQUIRED IMPORTED_TARGET jansson)
deepjit_static_dep(PkgConfig::DEEPJIT_JANSSON libjansson.a)
add_executable(deepjit_cli ${deepjit_cli_sources})
deepjit_settings(deepjit_cli)
target_link_libraries(deepjit_cli PRIVATE deepjit::static PkgConfig::DEEPJIT_JANSSON m)
set_target_properties(deepjit_cli PROPERTIES
    OUTPUT_NAME deepjit RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
