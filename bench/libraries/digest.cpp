// SHA-256 against OpenSSL, on one thread.

#include <memory>

#include <openssl/evp.h>

#include <normscope/core/snapshot.hpp>

#include "pairs.hpp"

namespace normscope::bench {

void digest_rows(bool quick, const Show& show) {
  const std::vector<std::byte> bytes(std::size_t{1} << (quick ? 20U : 24U), std::byte{7});
  const auto numbers = [](const Digest& digest) {
    std::vector<double> values;
    for (const std::byte byte : digest) values.push_back(std::to_integer<int>(byte));
    return values;
  };
  const auto own = std::make_shared<Digest>();
  const auto theirs = std::make_shared<Digest>();
  show(compare("sha256", {.text = quick ? "1 MiB" : "16 MiB", .dtype = "bytes"},
               {"normscope", [=] { *own = sha256(bytes); }, [=] { return numbers(*own); }},
               {{"OpenSSL",
                 [=] {
                   EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(theirs->data()),
                              nullptr, EVP_sha256(), nullptr);
                 },
                 [=] { return numbers(*theirs); }}},
               11, 0.0));
}

}  // namespace normscope::bench
