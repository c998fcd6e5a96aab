#include "ranks.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <mpi.h>

namespace normscope {
namespace {

/// Without a launcher, MPI would start one of its own.
bool launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

/// Bytes of one message; MPI counts them in an int.
constexpr std::size_t longest_message = std::size_t{1} << 30;

}  // namespace

Ranks::Ranks() {
  if (!launched()) return;
  MPI_Init(nullptr, nullptr);
  joined_ = true;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &count_);
}

Ranks::~Ranks() {
  if (joined_) MPI_Finalize();
}

void Ranks::gather(std::span<std::byte> bytes, std::span<const std::size_t> begins) const {
  if (count_ == 1) return;
  if (bytes.size() <= longest_message) {
    std::vector<int> first(size());
    std::vector<int> count(size());
    for (std::size_t member = 0; member < size(); ++member) {
      first[member] = static_cast<int>(begins[member]);
      count[member] = static_cast<int>(begins[member + 1] - begins[member]);
    }
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, bytes.data(), count.data(), first.data(), MPI_BYTE,
                   MPI_COMM_WORLD);
    return;
  }
  for (std::size_t member = 0; member < size(); ++member) {
    for (std::size_t begin = begins[member]; begin < begins[member + 1]; begin += longest_message) {
      const std::size_t now = std::min(longest_message, begins[member + 1] - begin);
      MPI_Bcast(bytes.data() + begin, static_cast<int>(now), MPI_BYTE, static_cast<int>(member),
                MPI_COMM_WORLD);
    }
  }
}

bool Ranks::any(bool value) const {
  if (count_ == 1) return value;
  int found = value ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &found, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return found != 0;
}

void Ranks::first_then_all(const std::function<void()>& work) const {
  if (is_first()) work();
  meet();
}

void Ranks::meet() const {
  if (joined_) MPI_Barrier(MPI_COMM_WORLD);
}

void Ranks::end_all(int status) const {
  if (count_ > 1) MPI_Abort(MPI_COMM_WORLD, status);
}

}  // namespace normscope
