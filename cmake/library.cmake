# SPDX-License-Identifier: MIT
# The two libraries, compiled separately: they differ in what DJ_API means.
set(deepjit_prelude ${PROJECT_SOURCE_DIR}/include/deepjit/kernel.h)
add_custom_command(
    OUTPUT ${PROJECT_BINARY_DIR}/prelude.c
    COMMAND ${CMAKE_COMMAND} -DINPUT=${deepjit_prelude} -DOUTPUT=${PROJECT_BINARY_DIR}/prelude.c
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${deepjit_prelude} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding deepjit/kernel.h"
    VERBATIM)
add_custom_target(deepjit_prelude DEPENDS ${PROJECT_BINARY_DIR}/prelude.c)

file(GLOB_RECURSE deepjit_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.c)

foreach(kind SHARED STATIC)
    string(TOLOWER ${kind} name)
    set(target deepjit_${name})
    add_library(${target} ${kind} ${deepjit_sources} ${PROJECT_BINARY_DIR}/prelude.c)
    add_dependencies(${target} deepjit_prelude)
    deepjit_settings(${target})
    target_include_directories(${target}
        PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
        PRIVATE ${PROJECT_SOURCE_DIR}/src ${DEEPJIT_XXHASH_INCLUDE_DIRS})
    target_link_libraries(${target} PRIVATE PkgConfig::DEEPJIT_SODIUM Threads::Threads
                                            ${CMAKE_DL_LIBS})
    set_target_properties(${target} PROPERTIES
        OUTPUT_NAME deepjit POSITION_INDEPENDENT_CODE ON
        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
        ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endforeach()

target_compile_definitions(deepjit_static PUBLIC DJ_STATIC)
set_target_properties(deepjit_shared PROPERTIES
    EXPORT_NAME deepjit VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
set_target_properties(deepjit_static PROPERTIES EXPORT_NAME static)
# Our own calls stay inside, whoever else defines a symbol of the same name.
target_link_options(deepjit_shared PRIVATE -Wl,-Bsymbolic)
if(NOT DEEPJIT_SANITIZE)
    target_link_options(deepjit_shared PRIVATE -Wl,--no-undefined)
endif()

add_library(deepjit::deepjit ALIAS deepjit_shared)
add_library(deepjit::static ALIAS deepjit_static)
