# SPDX-License-Identifier: MIT
# examples/<name>/<name>.c and bench/<name>/<name>.c become build/examples/<name> and
# build/bench/<name>, with nothing but the public headers. Directories with a CMakeLists.txt are
# projects of their own.
function(deepjit_programs folder)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*/*.c)
    foreach(source IN LISTS sources)
        cmake_path(GET source STEM stem)
        cmake_path(GET source PARENT_PATH dir)
        if(EXISTS ${dir}/CMakeLists.txt)
            continue()
        endif()
        set(target deepjit_${folder}_${stem})
        add_executable(${target} ${source})
        deepjit_settings(${target})
        target_link_libraries(${target} PRIVATE deepjit::static m)
        set_target_properties(${target} PROPERTIES
            OUTPUT_NAME ${stem} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
        set_property(GLOBAL APPEND PROPERTY deepjit_${folder} ${stem})
    endforeach()
endfunction()

if(DEEPJIT_BUILD_EXAMPLES)
    deepjit_programs(examples)
endif()
if(DEEPJIT_BUILD_BENCH)
    deepjit_programs(bench)
    add_subdirectory(bench/null_driver)
endif()
