#include <Eigen/Core>

#include "product.hpp"

using namespace bench;

namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using In = Eigen::Map<const Matrix<T>, Eigen::Aligned64>;

template <class T>
void multiply(const Product<T>& p) {
  Eigen::Map<Matrix<T>, Eigen::Aligned64> c(p.c, p.m, p.n);
  const In<T> a(p.a, p.ta ? p.k : p.m, p.ta ? p.m : p.k), b(p.b, p.tb ? p.n : p.k, p.tb ? p.k : p.n);
  if (p.ta)
    c.noalias() = a.transpose() * b;
  else if (p.tb)
    c.noalias() = a * b.transpose();
  else
    c.noalias() = a * b;
}

}  // namespace

int main(int argc, char** argv) {
  const Maker maker = [](const Task& t) { return product(t, [](const auto& p) { multiply(p); }); };
  const std::string version = std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
                              std::to_string(EIGEN_MINOR_VERSION) + " " + Eigen::SimdInstructionSetsInUse();
  return serve({version, {{"product", maker}}, Eigen::setNbThreads}, argc, argv);
}
