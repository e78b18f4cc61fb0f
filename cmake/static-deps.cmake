# SPDX-License-Identifier: MIT
#
# DEEPJIT_STATIC_DEPS: programs carry what they would load from packages (libsodium, jansson), so
# that they can be copied to a machine that has neither. cmocka comes without an archive; where it
# is needed, its shared library travels along (see scripts/pack-gpu.sh).

# deepjit_static_dep(<target of pkg-config> <archive>): links the archive instead.
function(deepjit_static_dep target archive)
    if(NOT DEEPJIT_STATIC_DEPS)
        return()
    endif()
    find_library(DEEPJIT_ARCHIVE_${archive} ${archive} REQUIRED)
    set_target_properties(${target} PROPERTIES
        INTERFACE_LINK_LIBRARIES ${DEEPJIT_ARCHIVE_${archive}})
    # What the archive defines is nobody else's business.
    set_property(TARGET ${target} APPEND PROPERTY
        INTERFACE_LINK_OPTIONS "-Wl,--exclude-libs,${archive}")
endfunction()
