#include "kernels/linear.hpp"

#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/oracle_gemm.hpp"

using namespace taper::kernels;
using namespace taper::test;

TEST_CASE("a linear layer gives the values PyTorch gives") {
  const LinearParams p{2, 3, 2};
  const std::vector<double> x{1, 2, 3, 4, 5, 6}, w{1, -2, 3, 0, 1, .5}, b{.1, -.2}, dy{1, 2, 3, 4};
  std::vector<double> y(4), dx(6), dw(6), db(2);
  linear_forward(p, x.data(), w.data(), b.data(), y.data());
  CHECK(relative_error(y, {6.1, 3.3, 12.1, 7.8}) < 1e-15);
  linear_backward<double>(p, dy.data(), x.data(), w.data(), {.dx = dx.data(), .dw = dw.data(), .db = db.data()});
  CHECK(dx == std::vector<double>{1, 0, 4, 3, -2, 11});
  CHECK(dw == std::vector<double>{13, 17, 21, 18, 24, 30});
  CHECK(db == std::vector<double>{4, 6});
}

TEMPLATE_TEST_CASE("a linear layer agrees with its definition, with and without bias and for every gradient", "", float,
                   double) {
  using T = TestType;
  for (const std::size_t rows : {1u, 2u, 7u, 37u})
    for (const std::size_t in : {1u, 3u, 32u, 97u})
      for (const std::size_t out : {1u, 5u, 9u, 101u}) {
        CAPTURE(rows, in, out);
        const LinearParams p{std::int64_t(rows), std::int64_t(in), std::int64_t(out)};
        const auto x = numbers<T>(rows * in, 1), w = numbers<T>(out * in, 2);
        const auto b = numbers<T>(out, 3), dy = numbers<T>(rows * out, 4);
        auto expected = taper::oracle::gemm(rows, out, in, false, true, x, w);
        std::vector<T> y(rows * out, T(NAN));
        linear_forward(p, x.data(), w.data(), static_cast<const T*>(nullptr), y.data());
        CHECK(relative_error(y, expected) < tolerance<T>());
        linear_forward(p, x.data(), w.data(), b.data(), y.data());
        for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += double(b[i % out]);
        CHECK(relative_error(y, expected) < tolerance<T>());

        std::vector<T> dx(rows * in, T(NAN)), dw(out * in, T(1)), db(out, T(NAN));
        linear_backward<T>(p, dy.data(), x.data(), w.data(),
                           {.dx = dx.data(), .dw = dw.data(), .db = db.data(), .add_dw = true});
        CHECK(relative_error(dx, taper::oracle::gemm(rows, in, out, false, false, dy, w)) < tolerance<T>());
        auto expected_dw = taper::oracle::gemm(out, in, rows, true, false, dy, x);
        for (double& v : expected_dw) v += 1;
        CHECK(relative_error(dw, expected_dw) < tolerance<T>());
        CHECK(relative_error(db, taper::oracle::gemm(1, out, rows, false, false, std::vector<T>(rows, T(1)), dy)) <
              tolerance<T>());
      }
}

TEST_CASE("a linear layer computes only the gradients that are asked for, each added or overwritten by itself") {
  const LinearParams p{2, 3, 2};
  const std::vector<float> x{1, 2, 3, 4, 5, 6}, w{1, -2, 3, 0, 1, .5}, dy{1, 2, 3, 4};
  std::vector<float> dx(6, 10), db(2, 10);
  linear_backward<float>(p, dy.data(), nullptr, w.data(), {.dx = dx.data(), .add_dx = true});
  CHECK(dx == std::vector<float>{11, 10, 14, 13, 8, 21});
  linear_backward<float>(p, dy.data(), nullptr, nullptr, {.db = db.data(), .add_db = true});
  CHECK(db == std::vector<float>{14, 16});
  linear_backward<float>(p, dy.data(), nullptr, nullptr, {.db = db.data()});
  CHECK(db == std::vector<float>{4, 6});
}

TEST_CASE("the gradient of a bias sums many rows with the same bits on any number of threads") {
  const std::size_t rows = 20011;
  for (const std::size_t out : {1u, 7u, 277u}) {
    CAPTURE(out);
    const LinearParams p{std::int64_t(rows), 3, std::int64_t(out)};
    const auto dy = numbers<float>(rows * out, 5);
    const auto bias = [&] {
      std::vector<float> db(out, 2);
      linear_backward_bias(p, dy.data(), db.data(), true);
      return db;
    };
    auto expected = taper::oracle::gemm(1, out, rows, false, false, std::vector<float>(rows, 1), dy);
    for (double& v : expected) v += 2;
    CHECK(relative_error(bias(), expected) < tolerance<float>());
    CHECK(same_on_any_threads(bias));
  }
}

TEST_CASE("a linear layer takes an empty batch and no features") {
  std::vector<float> y(4, NAN), dw(6, NAN), db(2, NAN), b{3, 4};
  linear_forward<float>({2, 0, 2}, nullptr, nullptr, b.data(), y.data());
  CHECK(y == std::vector<float>{3, 4, 3, 4});
  linear_forward<float>({2, 0, 2}, nullptr, nullptr, nullptr, y.data());
  CHECK(y == std::vector<float>(4, 0.0f));
  linear_forward<float>({0, 3, 2}, nullptr, b.data(), b.data(), nullptr);
  linear_backward<float>({0, 3, 2}, nullptr, nullptr, nullptr, {.dw = dw.data(), .db = db.data()});
  CHECK(dw == std::vector<float>(6, 0.0f));
  CHECK(db == std::vector<float>(2, 0.0f));
}
