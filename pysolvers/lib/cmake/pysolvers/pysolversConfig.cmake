# find_package(pysolvers CONFIG) gives the target pysolvers::pysolvers. The folder of this file is
# printed by `pysolvers config --cmake`.
get_filename_component(_pysolvers "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_library(pysolvers_LIBRARY pysolvers PATHS "${_pysolvers}/lib" NO_DEFAULT_PATH)

if(NOT pysolvers_LIBRARY)
  set(pysolvers_FOUND FALSE)
  set(pysolvers_NOT_FOUND_MESSAGE "there is no library libpysolvers in ${_pysolvers}/lib")
elseif(NOT TARGET pysolvers::pysolvers)
  add_library(pysolvers::pysolvers SHARED IMPORTED)
  set_target_properties(pysolvers::pysolvers PROPERTIES
    IMPORTED_LOCATION "${pysolvers_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${_pysolvers}/include")
endif()
unset(_pysolvers)
