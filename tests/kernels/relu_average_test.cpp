#include "kernels/relu_average.hpp"

#include <cmath>

#include "base/cpu_capability.hpp"
#include "kernels/activations.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"

using namespace taper::kernels;
using namespace taper::test;

namespace {

using Floats = std::vector<float>;

AvgPoolParams pairs(std::int64_t planes, std::int64_t height, std::int64_t width) {
  AvgPoolParams p{{.planes = planes}};
  p.in[1] = height;
  p.in[2] = width;
  p.out[1] = height / 2;
  p.out[2] = width / 2;
  for (int d = 1; d < 3; ++d) p.kernel[d] = p.stride[d] = 2;
  return p;
}

}  // namespace

TEST_CASE("ReLU and averages of two by two in one pass give the bits of the two") {
  for (const AvgPoolParams& p : {pairs(7, 10, 28), pairs(3, 2, 4), pairs(5, 6, 62), pairs(1, 14, 64), pairs(2, 4, 1024),
                                 pairs(61, 28, 34), pairs(3, 4, 10), pairs(2, 6, 18)}) {
    if (!relu_average_fits(p)) {
      CHECK(taper::detail::cpu_capability() == taper::detail::CpuCapability::baseline);  // alone has no such pass
      continue;
    }
    CAPTURE(p.planes, p.in[1], p.in[2]);
    const std::int64_t n = p.planes * p.in[1] * p.in[2];
    Floats x = numbers<float>(n, 1), dz = numbers<float>(n / 4, 2);
    x[1] = NAN;
    x[2] = -0.0f;
    x[3] = INFINITY;
    dz[1] = -0.0f;
    Floats y(x.size()), z(dz.size()), dx(y.size()), one_z(z.size(), NAN), one_dx(x.size(), NAN);
    map<Relu, float>(x.data(), y.data(), n, Relu{});
    avg_pool(p, y.data(), z.data());
    avg_pool_backward(p, dz.data(), dx.data(), false);
    map_grad<Relu, float>(dx.data(), y.data(), dx.data(), n, Relu{}, false);

    std::vector<std::uint16_t> positive(static_cast<std::size_t>(relu_average_bits(p)));
    relu_average(p, x.data(), one_z.data(), positive.data());
    relu_average_backward(p, dz.data(), positive.data(), one_dx.data());
    CHECK(same_bits(one_z, z));
    CHECK(same_bits(one_dx, dx));
  }
}

TEST_CASE("other pools have no such pass") {
  AvgPoolParams p[8];
  std::fill(p, p + 8, pairs(3, 6, 10));
  p[0].padding_left[1] = 1;
  p[1].kernel[2] = 3;
  p[2].stride[1] = 1;
  p[3].in[2] = 11;
  p[4].divisor_override = 3;
  p[5] = pairs(3, 6, 2);
  p[6] = pairs(3, 6, 1026);
  p[7].in[0] = p[7].out[0] = 2;
  for (const AvgPoolParams& other : p) CHECK_FALSE(relu_average_fits(other));
}
