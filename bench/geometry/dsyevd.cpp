#include "dsyevd.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

extern "C" void dsyevd_(const char* job, const char* triangle, const int* n, double* a, const int* lda,
                        double* w, double* work, const int* work_size, int* integers, const int* integer_size,
                        int* info);

namespace normscope::bench {

Contender dsyevd(const std::vector<double>& gain) {
  const auto semi_axes = std::make_shared<std::vector<double>>();
  const auto run = [gain, semi_axes] {
    const int n = static_cast<int>(gain.size());
    std::vector<double> a(gain.size() * gain.size());
    for (std::size_t i = 0; i < gain.size(); ++i) {
      for (std::size_t j = 0; j < gain.size(); ++j) {
        a[i * gain.size() + j] = gain[i] * gain[j] * ((i == j ? 1.0 : 0.0) - 1.0 / n);
      }
    }
    std::vector<double> eigenvalues(gain.size());
    double work_size = 0.0;
    int integer_size = 0;
    const int query = -1;
    int info = 0;
    dsyevd_("V", "U", &n, a.data(), &n, eigenvalues.data(), &work_size, &query, &integer_size, &query, &info);
    std::vector<double> work(static_cast<std::size_t>(work_size));
    std::vector<int> integers(static_cast<std::size_t>(integer_size));
    const int size = static_cast<int>(work.size());
    dsyevd_("V", "U", &n, a.data(), &n, eigenvalues.data(), work.data(), &size, integers.data(),
            &integer_size, &info);
    semi_axes->clear();
    for (int i = n; i-- > 1;) semi_axes->push_back(std::sqrt(std::max(0.0, eigenvalues[i] * n)));
  };
  return {"LAPACK dsyevd (OpenBLAS)", run, [semi_axes] { return *semi_axes; }};
}

}  // namespace normscope::bench
