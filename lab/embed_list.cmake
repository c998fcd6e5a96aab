# Writes OUTPUT, which defines what PROGRAM prints with `list`, as text and as JSON, and the names of the experiments
# whose networks libtorch computes.
execute_process(COMMAND "${PROGRAM}" list --json "${OUTPUT}.json"
  OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
file(READ "${OUTPUT}.json" json)
string(STRIP "${text}" text)
string(STRIP "${json}" json)
set(torch_experiments "")
string(JSON count LENGTH "${json}" experiments)
math(EXPR last "${count} - 1")
foreach(index RANGE ${last})
  string(JSON backend GET "${json}" experiments ${index} backend)
  if(NOT backend STREQUAL "own")
    string(JSON name GET "${json}" experiments ${index} name)
    string(APPEND torch_experiments "\"${name}\", ")
  endif()
endforeach()
file(WRITE "${OUTPUT}" "namespace normscope::lab {
extern const char* const list_text;
extern const char* const list_json;
extern const char* const torch_experiments[];
const char* const list_text = R\"list(${text})list\";
const char* const list_json = R\"list(${json})list\";
const char* const torch_experiments[] = {${torch_experiments}nullptr};
}  // namespace normscope::lab
")
