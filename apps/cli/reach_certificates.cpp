#include "reach_certificates.hpp"

#include "array_folder.hpp"

namespace normscope::cli {

std::vector<std::string> witness_files(const std::string& folder) {
  return array_files(folder, {"rows", "offsets", "reachable", "witnesses", "leads"});
}

void write_witnesses(const std::string& folder, const selectability::Logits& logits,
                     const std::vector<selectability::TokenReach>& tokens) {
  if (folder.empty()) return;
  std::vector<double> reachable;
  std::vector<double> witnesses;
  std::vector<double> leads;
  for (std::size_t token = 0; token < tokens.size(); ++token) {
    if (tokens[token].answer != convex::Answer::yes) continue;
    const std::vector<double> point = selectability::witness(logits, token, tokens[token]);
    reachable.push_back(static_cast<double>(token));
    witnesses.insert(witnesses.end(), point.begin(), point.end());
    leads.push_back(tokens[token].lower);
  }
  const ArrayFolder arrays(folder);
  arrays.write("rows", logits.rows, logits.width);
  arrays.write("offsets", logits.offsets);
  arrays.write("reachable", std::move(reachable));
  arrays.write("witnesses", std::move(witnesses), logits.width);
  arrays.write("leads", std::move(leads));
}

}  // namespace normscope::cli
