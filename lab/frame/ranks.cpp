#include "ranks.hpp"

#include <cstdlib>

#include <mpi.h>

namespace normscope::lab {
namespace {

/// Without a launcher, MPI would start one of its own.
bool launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

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

void Ranks::first_then_all(const std::function<void()>& work) const {
  if (first()) work();
  meet();
}

void Ranks::meet() const {
  if (joined_) MPI_Barrier(MPI_COMM_WORLD);
}

void Ranks::end_all(int status) const {
  if (several()) MPI_Abort(MPI_COMM_WORLD, status);
}

}  // namespace normscope::lab
