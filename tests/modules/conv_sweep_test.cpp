#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/conv_case.hpp"
#include "support/kernel_check.hpp"
#include "taper/creation.hpp"

using namespace taper;
using test::ConvCase;
using test::relative_error;

namespace {

/// One forward and backward, of numbers whose products do not cancel, so that the largest result is a fair measure.
template <class T>
struct ConvCall {
  std::vector<T> x, w, b, dy;
  std::vector<T> y, dx, dw, db;

  explicit ConvCall(const ConvCase& c)
      : x(test::numbers<T>(c.input().numel(), 1, -1, 2)),
        w(test::numbers<T>(c.weight().numel(), 2, -1, 2)),
        b(test::numbers<T>(c.bias ? c.conv.out_channels : 0, 3, -1, 2)),
        dy(test::numbers<T>(c.output().numel(), 4, -1, 2)) {
    const Tensor input = from_data(x, c.input()).requires_grad_(), weight = from_data(w, c.weight()).requires_grad_();
    const Tensor bias = c.bias ? from_data(b, {c.conv.out_channels}).requires_grad_() : Tensor();
    const Tensor output = c.call(input, weight, bias);
    REQUIRE(output.shape() == c.output());
    output.backward(from_data(dy, c.output()));
    y = output.to_vector<T>();
    dx = input.grad().template to_vector<T>();
    dw = weight.grad().template to_vector<T>();
    if (c.bias) db = bias.grad().template to_vector<T>();
  }
};

/// The largest error of the output and of all gradients, in units of what the type allows.
template <class T>
double error_of(const ConvCase& c) {
  const ConvCall<T> call(c);
  const auto y = oracle::conv_forward(c.conv, call.x, call.w, call.b);
  auto g = oracle::conv_backward(c.conv, call.x, call.w, call.dy);
  if (!c.bias) g.db.clear();
  return std::max({relative_error(call.y, y), relative_error(call.dx, g.dx), relative_error(call.dw, g.dw),
                   relative_error(call.db, g.db)}) /
         test::tolerance<T>();
}

bool refused(const ConvCase& c) {
  try {
    c.call(zeros(c.input()), zeros(c.weight()), Tensor());
    return false;
  } catch (const Error&) {
    return true;
  }
}

/// Every problem of `count` drawn cases, as text; also how many were legal.
struct Sweep {
  std::vector<std::string> problems;
  int legal = 0, illegal = 0;

  void run(int count, int dims, std::int64_t longest, std::int64_t most, std::uint64_t seed) {
    Generator random{.seed = seed, .stream = Stream::data};
    for (int made = 0; made < count;) {
      ConvCase c = test::draw_conv(random, dims, longest, most);
      if (!c.legal()) {
        ++illegal;
        if (!refused(c)) problems.push_back(c.text() + ": not refused");
        continue;
      }
      ++made;
      ++legal;
      const double wide = error_of<double>(c), narrow = error_of<float>(c);
      if (!(wide < 1 && narrow < 1))
        problems.push_back(c.text() + ": error " + std::to_string(wide) + ", in float32 " + std::to_string(narrow));
    }
  }
};

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// The matrix of the linear map from x to y, from the definition.
std::vector<double> toeplitz(const ConvCase& c, const std::vector<double>& w) {
  const auto columns = std::size_t(c.input().numel());
  std::vector<double> matrix(std::size_t(c.output().numel()) * columns, 0.0);
  oracle::for_terms(c.conv, [&](std::size_t x, std::size_t tap, std::size_t y) { matrix[y * columns + x] += w[tap]; });
  return matrix;
}

}  // namespace

TEST_CASE("convolutions agree with their definition on thousands of random cases") {
  Sweep sweep;
  sweep.run(4500, 1, 17, 5, 11);
  sweep.run(4500, 2, 7, 4, 12);
  sweep.run(3000, 3, 5, 3, 13);
  CHECK(sweep.problems == std::vector<std::string>{});
  CHECK(sweep.legal == 12000);
  CHECK(sweep.illegal > 2000);
}

TEST_CASE("convolutions agree with their definition across the blocks they are cut into") {
  Sweep sweep;
  sweep.run(60, 1, 331, 41, 21);
  sweep.run(60, 2, 31, 23, 22);
  sweep.run(40, 3, 11, 13, 23);
  CHECK(sweep.problems == std::vector<std::string>{});
}

TEST_CASE("forward and backward of a convolution are adjoint in the input and in the weight") {
  Generator random{.seed = 31, .stream = Stream::data};
  std::vector<std::string> problems;
  for (int made = 0; made < 600;) {
    ConvCase c = test::draw_conv(random, 1 + made % 3, 13, 5);
    c.bias = false;
    if (!c.legal()) continue;
    ++made;
    const ConvCall<double> call(c);
    const double forward = dot(call.y, call.dy);
    double scale = 1;
    for (std::size_t i = 0; i < call.y.size(); ++i) scale += std::abs(call.y[i] * call.dy[i]);
    if (std::abs(forward - dot(call.x, call.dx)) > 1e-12 * scale ||
        std::abs(forward - dot(call.w, call.dw)) > 1e-12 * scale)
      problems.push_back(c.text());
  }
  CHECK(problems == std::vector<std::string>{});
}

TEST_CASE("a convolution is the product with its Toeplitz matrix") {
  Generator random{.seed = 41, .stream = Stream::data};
  std::vector<std::string> problems;
  for (int made = 0; made < 300;) {
    ConvCase c = test::draw_conv(random, 1 + made % 3, 5, 2);
    c.bias = false;
    if (!c.legal() || c.conv.batch == 0) continue;
    ++made;
    const ConvCall<double> call(c);
    const Tensor matrix = from_data(toeplitz(c, call.w), {c.output().numel(), c.input().numel()});
    const Tensor y = matmul(matrix, from_data(call.x, {c.input().numel()}));
    const Tensor dx = matmul(from_data(call.dy, {c.output().numel()}), matrix);
    if (relative_error(call.y, y.to_vector<double>()) > 1e-13 ||
        relative_error(call.dx, dx.to_vector<double>()) > 1e-13)
      problems.push_back(c.text());
  }
  CHECK(problems == std::vector<std::string>{});
}

TEMPLATE_TEST_CASE("unit dimensions change no bit of a convolution", "", float, double) {
  Generator random{.seed = 51, .stream = Stream::data};
  std::vector<std::string> problems;
  for (int made = 0; made < 400;) {
    ConvCase c = test::draw_conv(random, 1 + made % 2, 19, 5);
    if (!c.legal()) continue;
    ++made;
    const ConvCall<TestType> few(c);
    // The dimensions in front hold what an unused one holds: extent, kernel and stride 1, no padding.
    for (++c.dims; c.dims <= 3; ++c.dims) {
      if (!c.legal()) FAIL(c.text());
      const ConvCall<TestType> more(c);
      if (!(more.y == few.y && more.dx == few.dx && more.dw == few.dw && more.db == few.db))
        problems.push_back(c.text());
    }
  }
  CHECK(problems == std::vector<std::string>{});
}

TEMPLATE_TEST_CASE("convolutions of any geometry have the same bits for one, two and three threads", "", float,
                   double) {
  Generator random{.seed = 61, .stream = Stream::data};
  int large = 0;
  for (int made = 0; made < 40;) {
    ConvCase c = test::draw_conv(random, 1 + made % 3, made % 3 == 0 ? 331 : made % 3 == 1 ? 31 : 11, 29);
    if (!c.legal()) continue;
    ++made;
    large += c.output().numel() * c.weight().numel() / c.conv.out_channels > 1000000;
    CAPTURE(c.text());
    REQUIRE(test::same_on_any_threads([&] {
      const ConvCall<TestType> call(c);
      auto all = call.y;
      for (const auto* part : {&call.dx, &call.dw, &call.db}) all.insert(all.end(), part->begin(), part->end());
      return all;
    }));
  }
  CHECK(large > 5);  // several threads had work
}
