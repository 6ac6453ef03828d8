#include "kernels/conv_average.hpp"

#include "base/cpu_capability.hpp"
#include "kernels/activations.hpp"
#include "kernels/avg_pool.hpp"
#include "kernels/elementwise.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"

using namespace taper::kernels;
using namespace taper::test;

namespace {

using Floats = std::vector<float>;

ConvParams lines(std::int64_t batch, std::int64_t in, std::int64_t out, std::int64_t length, std::int64_t kernel,
                 std::int64_t padding, std::int64_t groups = 1, std::int64_t dilation = 1) {
  ConvParams p{.batch = batch, .in_channels = in, .out_channels = out, .groups = groups};
  p.in[2] = length;
  p.out[2] = length + 2 * padding - (kernel - 1) * dilation;
  p.kernel[2] = kernel;
  p.padding[2] = padding;
  p.dilation[2] = dilation;
  return p;
}

}  // namespace

TEST_CASE("a convolution, ReLU and averages in one pass give the bits of the three") {
  for (const ConvParams& p : {lines(13, 3, 32, 10, 3, 1), lines(29, 4, 22, 7, 2, 4, 2), lines(2, 5, 61, 15, 1, 0),
                              lines(3, 2, 23, 17, 4, 1, 1, 5)}) {
    if (!conv_average_fits(p)) {
      CHECK(taper::detail::cpu_capability() == taper::detail::CpuCapability::baseline);  // alone has no such pass
      continue;
    }
    CAPTURE(p.batch, p.out_channels);
    const std::int64_t n = p.batch * p.out_channels, terms = p.in_channels / p.groups * p.kernel[2];
    Floats x = numbers<float>(p.batch * p.in_channels * p.in[2], 1), w = numbers<float>(p.out_channels * terms, 2);
    const Floats b = numbers<float>(p.out_channels, 3), dz = numbers<float>(n, 4);
    x[5] = NAN;
    w[1] = -0.0f;
    AvgPoolParams pool{{.planes = n}};
    pool.in[2] = pool.kernel[2] = pool.stride[2] = p.out[2];
    const double divisor = static_cast<double>(p.out[2]);
    for (const bool add : {false, true}) {
      Floats y(static_cast<std::size_t>(n * p.out[2])), z(dz.size()), dy(y.size()), dw(w.size(), 3), db(b.size(), 5);
      Floats one_z(z.size(), NAN), one_dw(dw), one_db(db);
      conv_forward(p, x.data(), w.data(), b.data(), y.data());
      map<Relu, float>(y.data(), y.data(), n * p.out[2], Relu{});
      avg_pool(pool, y.data(), z.data());
      avg_pool_backward(pool, dz.data(), dy.data(), false);
      map_grad<Relu, float>(dy.data(), y.data(), dy.data(), n * p.out[2], Relu{}, false);
      conv_backward_parameters(p, dy.data(), x.data(), dw.data(), add, db.data(), add);

      std::vector<std::uint16_t> positive(static_cast<std::size_t>(conv_average_bits(p)));
      conv_average(p, divisor, x.data(), w.data(), b.data(), one_z.data(), positive.data());
      conv_average_backward(p, divisor, dz.data(), positive.data(), x.data(), one_dw.data(), add, one_db.data(), add);
      CHECK(same_bits(z, one_z));
      CHECK(same_bits(dw, one_dw));
      CHECK(same_bits(db, one_db));
    }
  }
}
