# TORCH_LIBRARIES: the system's libtorch, or with NORMSCOPE_TORCH that of a Python package, which can compute on a GPU.
set(NORMSCOPE_TORCH "" CACHE PATH "Folder of the Python package torch, whose libtorch the lab then uses")
if(NOT NORMSCOPE_TORCH)
  find_package(Torch 1.13 REQUIRED)
  return()
endif()
if(NOT EXISTS "${NORMSCOPE_TORCH}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "NORMSCOPE_TORCH: ${NORMSCOPE_TORCH} has no lib/libtorch_cpu.so, expected the folder of the "
                      "Python package torch")
endif()
add_library(normscope_python_torch INTERFACE)
# Torch's own headers alone: the package has those of other libraries beside them, fmt's of another version.
set(headers "${PROJECT_BINARY_DIR}/python_torch")
file(MAKE_DIRECTORY "${headers}")
foreach(folder ATen c10 caffe2 torch)
  file(CREATE_LINK "${NORMSCOPE_TORCH}/include/${folder}" "${headers}/${folder}" SYMBOLIC)
endforeach()
target_include_directories(normscope_python_torch SYSTEM INTERFACE
  "${headers}" "${headers}/torch/csrc/api/include")
target_link_libraries(normscope_python_torch INTERFACE
  "${NORMSCOPE_TORCH}/lib/libtorch_cpu.so" "${NORMSCOPE_TORCH}/lib/libc10.so")
# These find the libraries that they need beside them.
target_link_options(normscope_python_torch INTERFACE -Wl,--allow-shlib-undefined)
if(EXISTS "${NORMSCOPE_TORCH}/lib/libtorch_cuda.so")
  # It adds its functions to torch when it is loaded; nothing else names them.
  target_link_libraries(normscope_python_torch INTERFACE
    -Wl,--push-state,--no-as-needed "${NORMSCOPE_TORCH}/lib/libtorch_cuda.so" -Wl,--pop-state)
endif()
set(TORCH_LIBRARIES normscope_python_torch)
