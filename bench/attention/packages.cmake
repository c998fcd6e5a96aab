# The lab's kernel, and how it keeps libtorch to one thread, without the rest of the lab.
set(other_sources "${PROJECT_SOURCE_DIR}/lab/language/attention.cpp" "${PROJECT_SOURCE_DIR}/lab/torch/threads.cpp")
set(other_folders "${PROJECT_SOURCE_DIR}/lab")
