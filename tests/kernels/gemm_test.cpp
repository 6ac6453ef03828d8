#include "kernels/gemm.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <array>

#include "support/accuracy.hpp"
#include "support/blas.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/oracle_gemm.hpp"

using namespace taper::kernels;
using namespace taper::test;

namespace {

GemmParams gemm_params(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a, bool transpose_b) {
  return {.m = m,
          .n = n,
          .k = k,
          .lda = transpose_a ? m : k,
          .ldb = transpose_b ? k : n,
          .ldc = n,
          .transpose_a = transpose_a,
          .transpose_b = transpose_b};
}

/// The error of one product against the oracle, relative to the square root of the terms.
template <class T>
double error_of(const GemmParams& p) {
  const auto a = numbers<T>(size(p.m * p.k), 1), b = numbers<T>(size(p.k * p.n), 2);
  std::vector<T> c(size(p.m * p.n), T(NAN));
  gemm(p, a.data(), b.data(), c.data());
  const auto expected = taper::oracle::gemm(size(p.m), size(p.n), size(p.k), p.transpose_a, p.transpose_b, a, b);
  return relative_error(c, expected);
}

}  // namespace

TEMPLATE_TEST_CASE("a matrix product agrees with its definition for every transposition and size", "", float, double) {
  const std::int64_t sizes[][3] = {
      {1, 1, 1},      {1, 7, 5},     {7, 1, 5},       {2, 5, 3},      {3, 4, 7},    {5, 13, 11},   {13, 2, 17},
      {6, 8, 5},      {12, 32, 19},  {11, 31, 2},     {29, 64, 67},   {25, 32, 65}, {37, 23, 259}, {97, 131, 13},
      {101, 67, 271}, {53, 16, 127}, {3, 61, 509},    {191, 257, 31}, {2, 3, 1031}, {73, 1, 83},   {1, 89, 79},
      {4, 43, 47},    {41, 4, 47},   {103, 64, 1537}, {7, 11, 2053},  {34, 16, 70}, {58, 24, 65}};
  for (const auto& s : sizes)
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        CAPTURE(s[0], s[1], s[2], transpose_a, transpose_b);
        CHECK(error_of<TestType>(gemm_params(s[0], s[1], s[2], transpose_a, transpose_b)) < tolerance<TestType>());
      }
}

TEST_CASE("large products agree with Eigen's") {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const std::int64_t m = 257, n = 389, k = 523;
  const auto a = numbers<double>(size(m * k), 1), b = numbers<double>(size(k * n), 2);
  std::vector<double> c(size(m * n), NAN);
  gemm(gemm_params(m, n, k, false, false), a.data(), b.data(), c.data());
  const Matrix expected = Eigen::Map<const Matrix>(a.data(), m, k) * Eigen::Map<const Matrix>(b.data(), k, n);
  CHECK((Eigen::Map<const Matrix>(c.data(), m, n) - expected).cwiseAbs().maxCoeff() < 1e-12 * double(k));
}

TEST_CASE("a product of small whole numbers is exact") {
  // [[1, 2, 3], [4, 5, 6]] times [[1, 0], [2, 1], [0, 3]]
  const std::vector<float> a{1, 2, 3, 4, 5, 6}, b{1, 0, 2, 1, 0, 3};
  std::vector<float> c(4);
  gemm(gemm_params(2, 2, 3, false, false), a.data(), b.data(), c.data());
  CHECK(c == std::vector<float>{5, 11, 14, 23});
}

/// Columns that fill vectors and panels of them with every set of instructions, and columns that do not.
const std::vector<std::int64_t> kColumns{37, 64};

TEST_CASE("a product adds to the result when asked and overwrites it otherwise") {
  const auto n = GENERATE(from_range(kColumns));
  for (const std::int64_t m : {3, 47})
    for (const std::int64_t k : {5, 71, 1033})
      for (const bool transpose_b : {false, true}) {
        CAPTURE(m, n, k, transpose_b);
        GemmParams p = gemm_params(m, n, k, false, transpose_b);
        const auto a = numbers<float>(size(m * k), 3), b = numbers<float>(size(k * n), 4);
        const auto before = numbers<float>(size(m * n), 5);
        auto expected = taper::oracle::gemm(size(m), size(n), size(k), false, transpose_b, a, b);
        std::vector<float> c(size(m * n), NAN);
        gemm(p, a.data(), b.data(), c.data());
        CHECK(relative_error(c, expected) < 1e-6);
        c = before;
        p.add = true;
        gemm(p, a.data(), b.data(), c.data());
        for (std::size_t i = 0; i < c.size(); ++i) expected[i] += static_cast<double>(before[i]);
        CHECK(relative_error(c, expected) < 1e-6);
      }
}

TEST_CASE("a product begins with a bias for each column, but not where it is added to the result") {
  const auto n = GENERATE(from_range(kColumns));
  const auto bias = numbers<float>(size(n), 11);
  for (const std::int64_t m : {3, 47, 101})
    for (const std::int64_t k : {0, 5, 271, 4099})
      for (const bool transpose_b : {false, true}) {
        CAPTURE(m, n, k, transpose_b);
        GemmParams p = gemm_params(m, n, k, false, transpose_b);
        const auto a = numbers<float>(size(m * k), 3), b = numbers<float>(size(k * n), 4);
        const auto before = numbers<float>(size(m * n), 5);
        auto with_bias = taper::oracle::gemm(size(m), size(n), size(k), false, transpose_b, a, b), added = with_bias;
        for (std::size_t i = 0; i < with_bias.size(); ++i) {
          with_bias[i] += static_cast<double>(bias[i % size(n)]);
          added[i] += static_cast<double>(before[i]);
        }
        std::vector<float> c(size(m * n), NAN);
        gemm(p, a.data(), b.data(), c.data(), bias.data());
        CHECK(relative_error(c, with_bias) < 1e-6);
        c = before;
        p.add = true;
        gemm(p, a.data(), b.data(), c.data(), bias.data());
        CHECK(relative_error(c, added) < 1e-6);
      }
}

TEST_CASE("a product over no terms is zero, and leaves the result alone when adding") {
  std::vector<double> c{1, 2, 3, 4, 5, 6};
  GemmParams p = gemm_params(2, 3, 0, false, false);
  p.add = true;
  gemm<double>(p, nullptr, nullptr, c.data());
  CHECK(c == std::vector<double>{1, 2, 3, 4, 5, 6});
  p.add = false;
  gemm<double>(p, nullptr, nullptr, c.data());
  CHECK(c == std::vector<double>(6, 0.0));
  gemm<double>(gemm_params(0, 3, 2, false, true), nullptr, nullptr, nullptr);
  gemm<double>(gemm_params(3, 0, 2, true, false), nullptr, nullptr, nullptr);
  p.batch = 0;
  gemm<double>(p, nullptr, nullptr, nullptr);
}

TEST_CASE("a product reads and writes inside its leading dimensions only") {
  // The matrices are the top left corners of wider ones, whose other elements are NaN.
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true})
      for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{5, 19, 67}, {53, 19, 67}, {31, 149, 259}}) {
        CAPTURE(transpose_a, transpose_b, m);
        const auto a = numbers<double>(size(m * k), 6), b = numbers<double>(size(k * n), 7);
        const auto widen = [](const std::vector<double>& x, std::int64_t columns, std::int64_t ld) {
          std::vector<double> wide(x.size() / size(columns) * size(ld), NAN);
          for (std::size_t i = 0; i < x.size(); ++i) wide[i / size(columns) * size(ld) + i % size(columns)] = x[i];
          return wide;
        };
        GemmParams p = gemm_params(m, n, k, transpose_a, transpose_b);
        const auto wide_a = widen(a, p.lda, p.lda + 3), wide_b = widen(b, p.ldb, p.ldb + 2);
        p.lda += 3, p.ldb += 2, p.ldc += 5;
        std::vector<double> wide_c(size(m * p.ldc), 123.0), c;
        gemm(p, wide_a.data(), wide_b.data(), wide_c.data());
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < n; ++j) c.push_back(wide_c[size(i * p.ldc + j)]);
          for (std::int64_t j = n; j < p.ldc; ++j) CHECK(wide_c[size(i * p.ldc + j)] == 123.0);
        }
        CHECK(relative_error(c, taper::oracle::gemm(size(m), size(n), size(k), transpose_a, transpose_b, a, b)) <
              1e-13);
      }
}

TEST_CASE("a batch of products uses its strides, and the same matrix for a stride of 0") {
  for (const std::int64_t m : {3, 29})
    for (const bool transpose_b : {false, true}) {
      CAPTURE(m, transpose_b);
      const std::int64_t n = 11, k = 13, batch = 5;
      GemmParams p = gemm_params(m, n, k, false, transpose_b);
      p.batch = batch, p.stride_a = m * k, p.stride_b = 0, p.stride_c = m * n;
      const auto a = numbers<float>(size(batch * m * k), 8), b = numbers<float>(size(k * n), 9);
      std::vector<float> c(size(batch * m * n), NAN);
      gemm(p, a.data(), b.data(), c.data());
      // A shared right matrix makes the batch one tall product.
      CHECK(relative_error(c, taper::oracle::gemm(size(batch * m), size(n), size(k), false, transpose_b, a, b)) < 1e-6);
      const std::vector<float> second(a.begin() + m * k, a.begin() + 2 * m * k);
      p.stride_a = 0, p.stride_b = k * n;
      const auto bs = numbers<float>(size(batch * k * n), 10);
      gemm(p, second.data(), bs.data(), c.data());
      const std::vector<float> last_b(bs.end() - k * n, bs.end()), last_c(c.end() - m * n, c.end());
      CHECK(relative_error(last_c, taper::oracle::gemm(size(m), size(n), size(k), false, transpose_b, second, last_b)) <
            1e-6);
    }
}

TEST_CASE("a column times a row is each product of their elements, in rows any distance apart") {
  for (const std::int64_t m : {1, 7, 300})
    for (const std::int64_t n : {63, 64, 67, 520})
      for (const bool transpose_a : {false, true})
        for (const bool transpose_b : {false, true})
          for (const std::int64_t apart : {0, 3}) {
            CAPTURE(m, n, transpose_a, transpose_b, apart);
            GemmParams p = gemm_params(m, n, 1, transpose_a, transpose_b);
            p.lda += apart, p.ldc += apart;
            const auto a = numbers<float>(size(m * p.lda), 19), b = numbers<float>(size(n), 20);
            std::vector<float> expected(size(m * p.ldc), 7), twice = expected;
            for (std::int64_t i = 0; i < m; ++i)
              for (std::int64_t j = 0; j < n; ++j) {
                const float product = a[size(transpose_a ? i : i * p.lda)] * b[size(j)];
                expected[size(i * p.ldc + j)] = product;
                twice[size(i * p.ldc + j)] = product + product;
              }
            CHECK(same_on_any_threads([&] {
              std::vector<float> c(expected.size(), 7);
              p.add = false;
              gemm(p, a.data(), b.data(), c.data());
              CHECK(same_bits(c, expected));
              p.add = true;
              gemm(p, a.data(), b.data(), c.data());
              CHECK(same_bits(c, twice));
              return c;
            }));
          }
}

TEST_CASE("a row times a matrix of long rows agrees with its definition, and writes nothing behind them") {
  for (const std::int64_t n : {63, 64, 65, 71, 72, 100, 257, 1088, 2051})
    for (const std::int64_t k : {2, 17, 64, 65, 200})
      for (const bool transpose_a : {false, true})
        for (const std::int64_t apart : {0, 3}) {
          CAPTURE(n, k, transpose_a, apart);
          GemmParams p = gemm_params(1, n, k, transpose_a, false);
          p.ldb += apart;
          const auto a = numbers<float>(size(k), 21), b = numbers<float>(size(k * p.ldb), 22);
          std::vector<double> expected(size(n));
          for (std::int64_t i = 0; i < k; ++i)
            for (std::int64_t j = 0; j < n; ++j)
              expected[size(j)] += static_cast<double>(a[size(i)]) * static_cast<double>(b[size(i * p.ldb + j)]);
          CHECK(same_on_any_threads([&] {
            std::vector<float> c(size(n + 8), 7);
            gemm(p, a.data(), b.data(), c.data());
            CHECK(std::all_of(c.begin() + n, c.end(), [](float x) { return x == 7; }));
            c.resize(size(n));
            CHECK(relative_error(c, expected) < 1e-6);
            return c;
          }));
        }
}

TEST_CASE("a batch of matrices is multiplied by one column each, or all by one, in every form") {
  const std::int64_t batch = 3;
  for (const std::int64_t m : {1, 7, 70, 300})
    for (const std::int64_t k : {1, 9, 130})
      for (const bool transpose_a : {false, true})
        for (const bool transpose_b : {false, true})
          for (const std::int64_t stride_b : {std::int64_t{0}, k + 2}) {
            CAPTURE(m, k, transpose_a, transpose_b, stride_b);
            GemmParams p = gemm_params(m, 1, k, transpose_a, transpose_b);
            p.lda += 3, p.batch = batch, p.stride_b = stride_b, p.stride_c = m + 1;
            const std::int64_t stored = transpose_a ? k : m;
            p.stride_a = stored * p.lda + 5;
            const auto a = numbers<double>(size(batch * p.stride_a), 11),
                       b = numbers<double>(size(batch * (k + 2)), 12);
            std::vector<double> c(size(batch * p.stride_c), 7);
            gemm(p, a.data(), b.data(), c.data());
            p.add = true;
            gemm(p, a.data(), b.data(), c.data());
            for (std::int64_t i = 0; i < batch; ++i) {
              for (std::int64_t row = 0; row < m; ++row) {
                double sum = 0;
                for (std::int64_t t = 0; t < k; ++t)
                  sum += a[size(i * p.stride_a + (transpose_a ? t * p.lda + row : row * p.lda + t))] *
                         b[size(i * stride_b + t)];
                CHECK(std::abs(c[size(i * p.stride_c + row)] - 2 * sum) < 1e-12 * double(k));
              }
              CHECK(c[size(i * p.stride_c + m)] == 7);
            }
          }
}

TEMPLATE_TEST_CASE("a product has the same bits however its right operand is stored", "", float, double) {
  // As many rows as few and as several vectors, and as blocks of them.
  for (const std::int64_t m : {5, 8, 16, 17, 31, 32, 33, 48, 64, 97, 112, 113, 128, 129})
    for (const auto& [n, k] : {std::array<std::int64_t, 2>{37, 29}, {67, 128}, {101, 131}, {259, 521}, {40, 4133}}) {
      CAPTURE(m, n, k);
      const auto a = numbers<TestType>(size(m * k), 13), b = numbers<TestType>(size(k * n), 14);
      const auto bias = numbers<TestType>(size(n), 15);
      std::vector<TestType> transposed(b.size()), c(size(m * n)), expected = c;
      for (std::size_t i = 0; i < b.size(); ++i) transposed[i % size(n) * size(k) + i / size(n)] = b[i];
      if (is_left_to_blas(gemm_params(m, n, k, false, false))) continue;
      gemm(gemm_params(m, n, k, false, false), a.data(), b.data(), expected.data(), bias.data());
      gemm(gemm_params(m, n, k, false, true), a.data(), transposed.data(), c.data(), bias.data());
      CHECK(same_bits(c, expected));
    }
}

TEMPLATE_TEST_CASE("a row of products has the same bits whatever rows are beside it", "", float, double) {
  // One chain of terms and several, one step of them and several, in tiles of six rows and of fewer.
  const std::int64_t m = 43, together = 5;
  const auto n = GENERATE(std::int64_t{53}, std::int64_t{61}, std::int64_t{64});
  for (const std::int64_t k : {64, 65, 131, 513, 1000, 4200})
    for (const bool add : {false, true}) {
      CAPTURE(n, k, add);
      GemmParams p = gemm_params(m, n, k, false, false);
      p.add = add;
      if (is_left_to_blas(p)) continue;
      const auto a = numbers<TestType>(size(m * k), 26), b = numbers<TestType>(size(k * n), 27);
      const auto bias = numbers<TestType>(size(n), 28);
      auto c = numbers<TestType>(size(m * n), 29), expected = c;
      gemm(p, a.data(), b.data(), c.data(), bias.data());
      for (std::int64_t i = 0; i < m; i += together) {
        p.m = std::min(together, m - i);
        gemm(p, a.data() + i * k, b.data(), expected.data() + i * n, bias.data());
      }
      CHECK(same_bits(c, expected));
    }
}

TEMPLATE_TEST_CASE("products in any order equal their definition, on any number of threads", "", float, double) {
  for (const auto& [n, k] : {std::array<std::int64_t, 2>{37, 99}, {10, 120}, {67, 500}, {35, 2100}, {21, 4205}})
    for (std::int64_t rows = 1; rows <= 27; ++rows)
      for (const bool few_columns : {false, true}) {
        GemmParams p = few_columns ? gemm_params(n, rows, k, false, true) : gemm_params(rows, n, k, false, true);
        p.any_order = true;
        CAPTURE(p.m, p.n, k);
        const auto a = numbers<TestType>(size(p.m * k), 16), b = numbers<TestType>(size(p.n * k), 17);
        const auto bias = numbers<TestType>(size(p.n), 18);
        auto expected = taper::oracle::gemm(size(p.m), size(p.n), size(k), false, true, a, b);
        for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % size(p.n)];
        CHECK(same_on_any_threads([&] {
          std::vector<TestType> c(size(p.m * p.n), TestType(NAN));
          gemm(p, a.data(), b.data(), c.data(), bias.data());
          CHECK(relative_error(c, expected) < (sizeof(TestType) == 4 ? 1e-6 : 1e-13));
          return c;
        }));
      }
}

TEMPLATE_TEST_CASE("a product has the same bits for one, two and three threads", "", float, double) {
  for (const auto& s : {std::array<std::int64_t, 3>{131, 149, 307},
                        {2, 331, 1103},
                        {89, 97, 1291},
                        {149, 1103, 41},  // rows of more blocks than are computed together
                        {101, 139, 4201}})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const bool add : {false, true}) {
          CAPTURE(s[0], s[1], s[2], transpose_a, transpose_b, add);
          GemmParams p = gemm_params(s[0], s[1], s[2], transpose_a, transpose_b);
          p.add = add;
          const auto a = numbers<TestType>(p.m * p.k, 11), b = numbers<TestType>(p.k * p.n, 12);
          const auto before = numbers<TestType>(p.m * p.n, 13);
          CHECK(same_on_any_threads([&] {
            std::vector<TestType> c = before;
            gemm(p, a.data(), b.data(), c.data());
            return c;
          }));
        }
}

TEMPLATE_TEST_CASE("a product of few terms and many results equals its definition, on any number of threads", "", float,
                   double) {
  // Whole tiles of columns, with a part of a vector behind them and with more; rows that lie whole pages apart.
  for (const auto& [m, n, k] :
       {std::array<std::int64_t, 3>{401, 331, 20}, {257, 576, 64}, {1024, 150, 9}, {131, 1024, 13}})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const bool add : {false, true}) {
          GemmParams p = gemm_params(m, n, k, transpose_a, transpose_b);
          p.add = add;
          p.ldc = n + 3;
          CAPTURE(m, n, k, transpose_a, transpose_b, add);
          const auto a = numbers<TestType>(size(m * k), 31), b = numbers<TestType>(size(k * n), 32);
          const auto bias = numbers<TestType>(size(n), 33);
          const auto before = numbers<TestType>(size(m * p.ldc), 34);
          auto expected = taper::oracle::gemm(size(m), size(n), size(k), transpose_a, transpose_b, a, b);
          for (std::size_t i = 0; i < expected.size(); ++i)
            expected[i] += add ? before[i / size(n) * size(p.ldc) + i % size(n)] : bias[i % size(n)];
          CHECK(same_on_any_threads([&] {
            std::vector<TestType> c = before, results;
            gemm(p, a.data(), b.data(), c.data(), bias.data());
            for (std::int64_t i = 0; i < m; ++i) {
              const auto row = c.begin() + i * p.ldc;
              results.insert(results.end(), row, row + n);
              CHECK(std::equal(row + n, row + p.ldc, before.begin() + i * p.ldc + n));
            }
            CHECK(relative_error(results, expected) < tolerance<TestType>());
            return c;
          }));
        }
}

TEST_CASE("threads share batches of products") {
  const std::int64_t n = 5, sizes[][3] = {{151, 307, 37}, {29, 31, 37}, {61, 257, 101}};
  for (const auto& [m, columns, k] : sizes)
    for (const bool transpose_a : {false, true}) {
      CAPTURE(m, columns, k, transpose_a);
      GemmParams p = gemm_params(m, columns, k, transpose_a, false);
      p.batch = n;
      p.stride_a = m * k;
      p.stride_b = k * columns;
      p.stride_c = m * columns;
      const auto a = numbers<float>(n * p.stride_a, 13), b = numbers<float>(n * p.stride_b, 14);
      std::vector<float> expected(size(n * p.stride_c));
      for (std::int64_t i = 0; i < n; ++i)
        gemm(gemm_params(m, columns, k, transpose_a, false), a.data() + i * p.stride_a, b.data() + i * p.stride_b,
             expected.data() + i * p.stride_c);
      CHECK(same_on_any_threads([&] {
        std::vector<float> c(expected.size(), NAN);
        gemm(p, a.data(), b.data(), c.data());
        CHECK(same_bits(c, expected));
        return c;
      }));
    }
}

TEST_CASE("a long float32 sum keeps its accuracy") {
  // A million equal terms: a plain float32 sum of 0.1 * 1 is off by about a percent.
  const std::int64_t k = 1000003;
  const std::vector<float> a(size(k), 0.1f), b(size(2 * k), 1.0f);
  for (const bool transpose_b : {false, true}) {
    std::vector<float> c(2);
    gemm(gemm_params(1, 2, k, false, transpose_b), a.data(), b.data(), c.data());
    CHECK(std::abs(double(c[1]) / (static_cast<double>(0.1f) * double(k)) - 1) < 1e-5);
  }
}

TEST_CASE("float32 sums of positive numbers are right to four units in the last place whatever their length") {
  // Nothing cancels, so every rounding error counts; the largest sum is the measure.
  for (const std::int64_t k : {61, 127, 257, 509, 1021, 1543, 4099})
    for (const std::int64_t m : {3, 67}) {
      CAPTURE(m, k);
      const GemmParams p = gemm_params(m, 101, k, false, true);
      const auto a = numbers<float>(m * k, 13, 0, 1), b = numbers<float>(101 * k, 14, 0, 1);
      std::vector<float> c(size(m * 101), NAN);
      gemm(p, a.data(), b.data(), c.data());
      CHECK(relative_error(c, taper::oracle::gemm(size(m), 101, size(k), false, true, a, b)) < tolerance<float>());
    }
}
