# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Where `cmake --install` puts files. find_package(Braid) then defines Braid::Runtime, Braid::RuntimeStatic and, unless only
# the runtime is built, Braid::Compiler.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(BRAID_INSTALL_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Braid)
# Headers have a folder of their own, since their paths (dialects/NN/IR/NN.h) are too general for /usr/include.
set(BRAID_INSTALL_HEADER_DIR ${CMAKE_INSTALL_INCLUDEDIR}/braid-${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

# braid_install_library(<target> <name>): installs libBraid<name>.so or .a, and exports Braid::<name>.
function(braid_install_library target name)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME Braid${name} EXPORT_NAME ${name} LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    INSTALL_RPATH "\$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON)
  target_link_options(${target} PRIVATE -Wl,-z,defs -Wl,-Bsymbolic-functions)
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${BRAID_INSTALL_HEADER_DIR}>)
  target_compile_features(${target} INTERFACE cxx_std_17)
  install(TARGETS ${target} EXPORT Braid${name}Targets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT Braid${name}Targets NAMESPACE Braid:: DESTINATION ${BRAID_INSTALL_PACKAGE_DIR})
endfunction()

# braid_install_tool(<target>)
function(braid_install_tool target)
  file(RELATIVE_PATH to_libraries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "\$ORIGIN/${to_libraries}" INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# Headers, and the package that find_package(Braid) reads. No public header of the runtime includes code generated from
# program.fbs, since that compiles with one version of FlatBuffers only.
function(braid_install_package)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/include/ DESTINATION ${BRAID_INSTALL_HEADER_DIR}
          FILES_MATCHING PATTERN "*.h" PATTERN "StatusMacros.h" EXCLUDE)
  # Braid has these machines built in; the files are for reading, and for making others.
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/share/machines DESTINATION ${CMAKE_INSTALL_DATADIR}/braid)
  if(NOT BRAID_RUNTIME_ONLY)
    # TableGen sources are installed too: operations defined by other projects use their interfaces.
    foreach(root ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
      install(DIRECTORY ${root}/include/braid DESTINATION ${BRAID_INSTALL_HEADER_DIR}
              FILES_MATCHING PATTERN "*.h" PATTERN "*.h.inc" PATTERN "*.td" PATTERN "CMakeFiles" EXCLUDE)
      install(DIRECTORY ${root}/dialects DESTINATION ${BRAID_INSTALL_HEADER_DIR}
              FILES_MATCHING PATTERN "*.h" PATTERN "*.h.inc" PATTERN "*.td" PATTERN "CMakeFiles" EXCLUDE)
    endforeach()
  endif()
  configure_package_config_file(cmake/BraidConfig.cmake.in ${PROJECT_BINARY_DIR}/BraidConfig.cmake
    INSTALL_DESTINATION ${BRAID_INSTALL_PACKAGE_DIR} PATH_VARS BRAID_INSTALL_HEADER_DIR)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/BraidConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/BraidConfig.cmake ${PROJECT_BINARY_DIR}/BraidConfigVersion.cmake
          ${PROJECT_SOURCE_DIR}/cmake/BraidKernels.cmake DESTINATION ${BRAID_INSTALL_PACKAGE_DIR})
endfunction()
