# Writes OUTPUT, which defines what PROGRAM prints with `list`, as text and as JSON.
execute_process(COMMAND "${PROGRAM}" list --json "${OUTPUT}.json"
  OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
file(READ "${OUTPUT}.json" json)
string(STRIP "${text}" text)
string(STRIP "${json}" json)
file(WRITE "${OUTPUT}" "namespace normscope::lab {
extern const char* const list_text;
extern const char* const list_json;
const char* const list_text = R\"list(${text})list\";
const char* const list_json = R\"list(${json})list\";
}  // namespace normscope::lab
")
