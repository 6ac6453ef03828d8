#include "kernels/recurrent.hpp"

#include <algorithm>

#include "kernels/gemm.hpp"
#include "kernels/linear.hpp"
#include "kernels/parallel.hpp"
#include "kernels/product.hpp"
#include "kernels/recurrent_cells.hpp"

namespace taper::kernels {

namespace {

/// Where the parts of the working memory begin; each begins on a cache line.
struct Layout {
  std::int64_t gates, extra, weights, bias, forward_end;
  std::int64_t da, dhidden, previous, dh, dc, end;
};

Layout layout_of(const RecurrentParams& p) {
  const std::int64_t gates = gates_of(p.cell), rows = p.steps * p.batch, state = rows * p.hidden_size;
  const bool plain = gates == 1, gru = p.cell == RecurrentCell::gru;
  std::int64_t at = 0;
  const auto take = [&at](std::int64_t elements) {
    const std::int64_t first = at;
    at += (elements + 15) / 16 * 16;
    return first;
  };
  Layout l{};
  l.gates = take(plain ? 0 : gates * state);  // the plain cells have their gate in y
  l.extra = take(plain ? 0 : state);
  l.weights = take(p.steps > 1 ? gates * p.hidden_size * p.hidden_size : 0);
  l.bias = take(gates * p.hidden_size);
  l.forward_end = at;
  l.da = take(gates * state);
  l.dhidden = gru ? take(gates * state) : l.da;
  l.previous = take(state);
  l.dh = take(p.batch * p.hidden_size);
  l.dc = take(p.batch * p.hidden_size);
  l.end = at;
  return l;
}

/// The rows of one step in an array of all steps: sample n has its elements at `data + n * row`.
template <class T>
struct Step {
  T* data;
  std::int64_t row;

  T* sample(std::int64_t n) const { return data + n * row; }
};

/// One pass over the sequence.
template <class Cell, class T>
struct Pass {
  const RecurrentParams& p;
  const RecurrentInputs<T>& in;
  const std::int64_t hidden = p.hidden_size, width = Cell::gates * hidden;
  T *gates, *extra;

  /// Step t of an array whose samples have `size` elements a step.
  template <class U>
  Step<U> at(U* data, std::int64_t t, std::int64_t size) const {
    if (p.batch_first) return {data + t * size, p.steps * size};
    return {data + t * p.batch * size, size};
  }
  /// The place of the k-th step that is computed.
  std::int64_t place(std::int64_t k) const { return p.reverse ? p.steps - 1 - k : k; }
  /// The hidden state or c before the k-th step; c is only LSTM's.
  Step<const T> before(const T* states, const T* initial, std::int64_t k) const {
    return k == 0 ? Step<const T>{initial, hidden} : at(states, place(k - 1), hidden);
  }
  const T* c0() const { return in.c0 != nullptr ? in.c0 : in.h0; }
};

/// W_hh^T as the right operand of a product: copied once for many steps, or read as it is stored for a single one.
template <class T>
struct HiddenWeights {
  const T* data;
  bool stored;  ///< as W_hh itself
  std::int64_t hidden, width;

  /// c += h W^T for the gates [first, first + count); c = .. without `add`.
  void multiply(std::int64_t rows, Step<const T> h, std::int64_t first, std::int64_t count, Step<T> c, bool add) const {
    gemm<T>({.m = rows,
             .n = count * hidden,
             .k = hidden,
             .lda = h.row,
             .ldb = stored ? hidden : width,
             .ldc = c.row,
             .transpose_b = stored,
             .add = add},
            h.data, data + first * hidden * (stored ? hidden : 1), c.data);
  }
};

/// Calls `body(first, rows)` for blocks of samples, whose sequences do not depend on each other.
template <class Body>
void for_each_block(const RecurrentParams& p, const Body& body) {
  constexpr std::int64_t kRows = 16;
  const std::int64_t parts = p.batch / kRows + (p.batch % kRows != 0);
  if (parts == 0) return;
  const std::int64_t each = p.batch / parts + (p.batch % parts != 0);
  const std::int64_t work = parallel_work(each * p.hidden_size * gates_of(p.cell), p.hidden_size + 64);
  const std::int64_t units = p.batch / each + (p.batch % each != 0);
  parallel_for(units, work * std::min<std::int64_t>(p.steps, 1 << 14), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) body(unit * each, std::min(each, p.batch - unit * each));
  });
}

/// a = W_ih x + b for all steps in one product. The biases of both sides are added here, but for the new gate of GRU.
template <class Cell, class T>
void input_product(const Pass<Cell, T>& s, T* bias) {
  const RecurrentParams& p = s.p;
  const std::int64_t rows = p.steps * p.batch;
  if (s.in.b_ih != nullptr) {
    const std::int64_t both = Cell::hidden_differs ? s.width - s.hidden : s.width;
    // bias = b_ih + b_hh
    for (std::int64_t j = 0; j < both; ++j) bias[j] = s.in.b_ih[j] + s.in.b_hh[j];
    for (std::int64_t j = both; j < s.width; ++j) bias[j] = s.in.b_ih[j];
  }
  linear_forward<T>({rows, p.input_size, s.width}, s.in.x, s.in.w_ih, s.in.b_ih != nullptr ? bias : nullptr, s.gates);
}

/// The hidden side of the k-th step for some samples.
template <class Cell, class T>
void hidden_product(const Pass<Cell, T>& s, const HiddenWeights<T>& weights, std::int64_t rows, Step<const T> h,
                    Step<T> gates, Step<T> extra) {
  if constexpr (Cell::hidden_differs) {
    const bool bias = s.in.b_hh != nullptr;
    const std::int64_t shared = Cell::gates - 1;
    weights.multiply(rows, h, 0, shared, gates, true);
    if (bias)
      for (std::int64_t n = 0; n < rows; ++n) copy_run(s.in.b_hh + shared * s.hidden, s.hidden, extra.sample(n));
    weights.multiply(rows, h, shared, 1, extra, bias);
  } else {
    weights.multiply(rows, h, 0, Cell::gates, gates, true);
  }
}

template <class Cell, class T>
void forward(const RecurrentParams& p, const RecurrentInputs<T>& in, T* y, T* c_n, T* memory) {
  const Layout l = layout_of(p);
  // The plain cells have nothing but y.
  const Pass<Cell, T> s{.p = p,
                        .in = in,
                        .gates = Cell::has_extra ? memory + l.gates : y,
                        .extra = Cell::has_extra ? memory + l.extra : y};
  input_product(s, memory + l.bias);
  HiddenWeights<T> weights{in.w_hh, true, s.hidden, s.width};
  if (p.steps > 1) {
    pack_transposed(in.w_hh, s.hidden, s.width, s.hidden, memory + l.weights, s.width);
    weights = {memory + l.weights, false, s.hidden, s.width};
  }
  for_each_block(p, [&](std::int64_t first, std::int64_t rows) {
    const auto from_first = [first](auto step) { return decltype(step){step.sample(first), step.row}; };
    for (std::int64_t k = 0; k < p.steps; ++k) {
      const Step<const T> h_before = from_first(s.before(y, in.h0, k));
      const Step<const T> c_before = from_first(s.before(s.extra, s.c0(), k));
      const Step<T> gates = from_first(s.at(s.gates, s.place(k), s.width));
      const Step<T> extra = from_first(s.at(s.extra, s.place(k), s.hidden));
      const Step<T> h = from_first(s.at(y, s.place(k), s.hidden));
      hidden_product(s, weights, rows, h_before, gates, extra);
      for (std::int64_t n = 0; n < rows; ++n)
        Cell::template forward<T>(
            s.hidden, {gates.sample(n), extra.sample(n), h_before.sample(n), c_before.sample(n), h.sample(n)});
      if (k + 1 == p.steps && c_n != nullptr)
        for (std::int64_t n = 0; n < rows; ++n) copy_run(extra.sample(n), s.hidden, c_n + (first + n) * s.hidden);
    }
  });
}

/// y = x, or += with `add`.
template <class T>
void hand_over(const T* x, std::int64_t n, const RecurrentGradient<T>& y, std::int64_t at) {
  if (y.data == nullptr) return;
  for (std::int64_t i = 0; i < n; ++i) y.data[at + i] = y.add ? y.data[at + i] + x[i] : x[i];
}

/// The gradients of a for all steps, and of the initial states.
template <class Cell, class T>
void through_time(const Pass<Cell, T>& s, const T* y, const T* dy, const T* dc_n, T* memory,
                  const RecurrentGradients<T>& gradients) {
  const RecurrentParams& p = s.p;
  const Layout l = layout_of(p);
  T *da = memory + l.da, *dhidden = memory + l.dhidden, *previous = memory + l.previous;
  for_each_block(p, [&](std::int64_t first, std::int64_t rows) {
    const auto from_first = [first](auto step) { return decltype(step){step.sample(first), step.row}; };
    T *dh = memory + l.dh + first * s.hidden, *dc = memory + l.dc + first * s.hidden;
    zero_run(rows * s.hidden, dh);
    if (dc_n != nullptr) {
      copy_run(dc_n + first * s.hidden, rows * s.hidden, dc);
    } else {
      zero_run(rows * s.hidden, dc);
    }
    for (std::int64_t k = p.steps - 1; k >= 0; --k) {
      const std::int64_t t = s.place(k);
      const Step<const T> h_before = from_first(s.before(y, s.in.h0, k));
      const Step<const T> c_before = from_first(s.before(s.extra, s.c0(), k));
      const Step<const T> h = from_first(s.template at<const T>(y, t, s.hidden));
      const Step<const T> dy_t = from_first(s.template at<const T>(dy, t, s.hidden));
      const Step<T> gates = from_first(s.at(s.gates, t, s.width)), extra = from_first(s.at(s.extra, t, s.hidden));
      const Step<T> da_t = from_first(s.at(da, t, s.width)), dhidden_t = from_first(s.at(dhidden, t, s.width));
      const Step<T> previous_t = from_first(s.at(previous, t, s.hidden));
      for (std::int64_t n = 0; n < rows; ++n) {
        copy_run(h_before.sample(n), s.hidden, previous_t.sample(n));
        Cell::template backward<T>(
            s.hidden, {gates.sample(n), extra.sample(n), h_before.sample(n), c_before.sample(n), h.sample(n),
                       dy_t.sample(n), dh + n * s.hidden, dc + n * s.hidden, da_t.sample(n), dhidden_t.sample(n)});
      }
      // dh_{t-1} = (what the cell sends) + da W_hh
      gemm<T>({.m = rows,
               .n = s.hidden,
               .k = s.width,
               .lda = dhidden_t.row,
               .ldb = s.hidden,
               .ldc = s.hidden,
               .add = Cell::keeps_hidden},
              dhidden_t.data, s.in.w_hh, dh);
    }
    hand_over(dh, rows * s.hidden, gradients.h0, first * s.hidden);
    hand_over(dc, rows * s.hidden, gradients.c0, first * s.hidden);
  });
}

template <class Cell, class T>
void backward(const RecurrentParams& p, const RecurrentInputs<T>& in, const T* y, const T* dy, const T* dc_n, T* memory,
              const RecurrentGradients<T>& g) {
  const Layout l = layout_of(p);
  const Pass<Cell, T> s{.p = p,
                        .in = in,
                        .gates = memory + (Cell::has_extra ? l.gates : l.da),
                        .extra = memory + (Cell::has_extra ? l.extra : l.da)};
  through_time(s, y, dy, dc_n, memory, g);
  const std::int64_t rows = p.steps * p.batch;
  linear_backward<T>({rows, p.input_size, s.width}, memory + l.da, in.x, in.w_ih,
                     {g.x.data, g.w_ih.data, g.b_ih.data, g.x.add, g.w_ih.add, g.b_ih.add});
  linear_backward<T>({rows, p.hidden_size, s.width}, memory + l.dhidden, memory + l.previous, in.w_hh,
                     {nullptr, g.w_hh.data, g.b_hh.data, false, g.w_hh.add, g.b_hh.add});
}

}  // namespace

std::int64_t recurrent_memory(const RecurrentParams& p, bool with_backward) {
  const Layout l = layout_of(p);
  return with_backward ? l.end : l.forward_end;
}

template <class T>
void recurrent_forward(const RecurrentParams& p, const RecurrentInputs<T>& in, T* y, T* c_n, T* memory) {
  switch (p.cell) {
    case RecurrentCell::rnn_tanh:
      return forward<TanhCell>(p, in, y, c_n, memory);
    case RecurrentCell::rnn_relu:
      return forward<ReluCell>(p, in, y, c_n, memory);
    case RecurrentCell::lstm:
      return forward<LstmCell>(p, in, y, c_n, memory);
    case RecurrentCell::gru:
      return forward<GruCell>(p, in, y, c_n, memory);
  }
}

template <class T>
void recurrent_backward(const RecurrentParams& p, const RecurrentInputs<T>& in, const T* y, const T* dy, const T* dc_n,
                        T* memory, const RecurrentGradients<T>& gradients) {
  switch (p.cell) {
    case RecurrentCell::rnn_tanh:
      return backward<TanhCell>(p, in, y, dy, dc_n, memory, gradients);
    case RecurrentCell::rnn_relu:
      return backward<ReluCell>(p, in, y, dy, dc_n, memory, gradients);
    case RecurrentCell::lstm:
      return backward<LstmCell>(p, in, y, dy, dc_n, memory, gradients);
    case RecurrentCell::gru:
      return backward<GruCell>(p, in, y, dy, dc_n, memory, gradients);
  }
}

#define TAPER_INSTANTIATE_RECURRENT(T)                                                                              \
  template void recurrent_forward(const RecurrentParams&, const RecurrentInputs<T>&, T*, T*, T*);                   \
  template void recurrent_backward(const RecurrentParams&, const RecurrentInputs<T>&, const T*, const T*, const T*, \
                                   T*, const RecurrentGradients<T>&)
TAPER_INSTANTIATE_RECURRENT(float);
TAPER_INSTANTIATE_RECURRENT(double);

}  // namespace taper::kernels
