# SPDX-License-Identifier: MIT
# examples/*/*.c and bench/*.c: one program a file, in build/examples and build/bench, with nothing
# but the public headers.
function(deepjit_programs folder)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c
                                        ${PROJECT_SOURCE_DIR}/${folder}/*/*.c)
    foreach(source IN LISTS sources)
        cmake_path(GET source STEM stem)
        set(target deepjit_${folder}_${stem})
        add_executable(${target} ${source})
        deepjit_settings(${target})
        target_link_libraries(${target} PRIVATE deepjit::static m)
        set_target_properties(${target} PROPERTIES
            OUTPUT_NAME ${stem} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
    endforeach()
endfunction()

if(DEEPJIT_BUILD_EXAMPLES)
    deepjit_programs(examples)
endif()
if(DEEPJIT_BUILD_BENCH)
    deepjit_programs(bench)
endif()
