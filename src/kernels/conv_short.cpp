#include "kernels/conv_short.hpp"

#include "kernels/conv_short_parts.hpp"

namespace taper::kernels {

#if defined(__AVX2__)

namespace {

/// y[f, :] = b[f] + sum over k of w[f, k] x[k, :], `R` rows at a time; the last ones may be summed twice, to the same.
template <int R>
void multiply_short(const ShortPart& part, const Vector<float>* x, std::int64_t rows, const float* w, const float* b,
                    float* y, std::int64_t row) {
  const std::int64_t terms = part.terms();
  for (std::int64_t i = 0; i < rows; i += R) {
    const std::int64_t f = std::min(i, rows - R);
    Vector<float> sum[R];
    const float* weight[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      sum[r] = (b != nullptr ? b[f + r] : 0.0f) - Vector<float>{};
      weight[r] = w + (f + r) * terms;
    }
    for (std::int64_t k = 0; k < terms; ++k)
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sum[r] = multiply_add(weight[r][k] - Vector<float>{}, x[k], sum[r]);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) store_lanes(sum[r], part.count(), y + (f + r) * row);
  }
}

/// bias[f] += x[0, f] + x[1, f] + ..., for n rows of `row` columns, one after the other
void add_rows(const float* x, std::int64_t n, std::int64_t row, double* bias) {
  for (std::int64_t f = 0; f < row; f += kWidth) {
    Long sum = Long::load(bias + f);
    for (std::int64_t i = 0; i < n; ++i) sum += Long(load(x + i * row + f));
    sum.store(bias + f);
  }
}

/// turned[n * out + i, f] = dy[n, f, i]
void turn(const ShortGradient& s, const float* dy, std::int64_t samples, float* turned) {
  const ConvParams& p = s.p;
  const std::int64_t out = p.out[2];
  for (std::int64_t n = 0; n < samples; ++n, turned += out * s.row()) {
    const float* from = dy + (n * p.out_channels + s.g * (p.out_channels / p.groups) + s.f) * out;
    pack_transposed(from, out, s.columns, out, turned, s.row());
  }
}

}  // namespace

bool short_forward(const ConvParams& p, const float* x, const float* w, const float* b, float* y) {
  if (!is_short(p)) return false;
  const std::int64_t channels = p.in_channels / p.groups, rows = p.out_channels / p.groups, out = p.out[2];
  const std::int64_t lines = p.batch * p.groups, terms = channels * p.kernel[2];
  // A line takes as long to be read and stored as a few products of each sum.
  parallel_for(lines, parallel_work(rows * ceil_div(out, kWidth) * kWidth, terms + 4),
               [=](std::int64_t first, std::int64_t last) {
                 for (std::int64_t i = 0; i < out; i += kWidth) {
                   const ShortPart part(p, i);
                   Vector<float> signal[kChain<float>];
                   for (std::int64_t line = first; line < last; ++line) {
                     const std::int64_t g = line % p.groups;
                     const float *weight = w + g * rows * terms, *bias = b != nullptr ? b + g * rows : nullptr;
                     float* to = y + line * rows * out + i;
                     const bool amid = is_amid(p, line / p.groups, g, channels * p.in[2]);
                     for (std::int64_t k = 0; k < terms; ++k)
                       signal[k] = part.read(k, x + line * channels * p.in[2], amid);
                     if (rows >= 8)
                       multiply_short<8>(part, signal, rows, weight, bias, to, out);
                     else if (rows >= 4)
                       multiply_short<4>(part, signal, rows, weight, bias, to, out);
                     else
                       multiply_short<1>(part, signal, rows, weight, bias, to, out);
                   }
                 }
               });
  return true;
}

bool short_backward_parameters(const ConvParams& p, const float* dy, const float* x, float* dw, bool add_dw, float* db,
                               bool add_db) {
  if (!is_short(p)) return false;
  short_gradients(p, x, dw, add_dw, db, add_db,
                  [&](const ShortGradient& s, std::int64_t n, std::int64_t samples, float* turned, double* bias) {
                    turn(s, dy + n * p.out_channels * p.out[2], samples, turned);
                    if (bias != nullptr) add_rows(turned, samples * p.out[2], s.row(), bias);
                  });
  return true;
}

#else

bool short_forward(const ConvParams&, const float*, const float*, const float*, float*) { return false; }
bool short_backward_parameters(const ConvParams&, const float*, const float*, float*, bool, float*, bool) {
  return false;
}

#endif

}  // namespace taper::kernels
