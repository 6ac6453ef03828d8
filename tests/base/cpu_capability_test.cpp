#include "base/cpu_capability.hpp"

#include <string>
#include <vector>

#include "kernels/gemm.hpp"
#include "support/catch.hpp"
#include "taper/creation.hpp"

using namespace taper;
using detail::CpuCapability;

namespace {

/// Puts the set that ran before back.
struct KeptCapability {
  CpuCapability kept = detail::cpu_capability();
  ~KeptCapability() { detail::set_cpu_capability(kept); }
};

std::vector<CpuCapability> offered() {
  std::vector<CpuCapability> sets;
  for (const auto set : {CpuCapability::baseline, CpuCapability::avx2, CpuCapability::avx512})
    if (set <= detail::offered_cpu_capability()) sets.push_back(set);
  return sets;
}

}  // namespace

TEST_CASE("the kernels of every instruction set are reached and agree where results are exact") {
  const KeptCapability kept;
  const std::int64_t m = 13, k = 29, n = 37;
  std::vector<float> a(std::size_t(m * k)), b(std::size_t(k * n)), expected(std::size_t(m * n));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = float(int(i * 7 % 23) - 11);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = float(int(i * 5 % 19) - 9);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t t = 0; t < k; ++t)
        expected[std::size_t(i * n + j)] += a[std::size_t(i * k + t)] * b[std::size_t(t * n + j)];
  for (const CpuCapability set : offered()) {
    CAPTURE(detail::name_of(set));
    detail::set_cpu_capability(set);
    CHECK(detail::cpu_capability() == set);
    CHECK(std::string(get_cpu_capability()) == detail::name_of(set));
    std::vector<float> c(expected.size());
    kernels::gemm({.m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n}, a.data(), b.data(), c.data());
    CHECK(c == expected);
  }
}

TEST_CASE("an instruction set beyond the processor's is lowered to what it has") {
  const KeptCapability kept;
  detail::set_cpu_capability(CpuCapability::avx512);
  CHECK(detail::cpu_capability() == detail::offered_cpu_capability());
}
