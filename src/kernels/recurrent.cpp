#include "kernels/recurrent.hpp"

#include <algorithm>

#include "kernels/gemm.hpp"
#include "kernels/linear.hpp"
#include "kernels/loop_hints.hpp"
#include "kernels/parallel.hpp"
#include "kernels/product.hpp"
#include "kernels/recurrent_cells.hpp"

namespace taper::kernels {

namespace {

/// Where the parts of the working memory begin; each begins on a cache line.
struct Layout {
  std::int64_t gates, extra, weights, bias, unprojected, projection, forward_end;
  std::int64_t da, dhidden, previous, dh, dc, dprojected, dunprojected, zeros, end;
};

Layout layout_of(const RecurrentParams& p) {
  const std::int64_t gates = gates_of(p.cell), rows = p.steps * p.batch, state = rows * p.hidden_size;
  const bool projects = p.proj_size > 0;
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
  if (p.steps > 1) {
    // W_hh^T for the forward pass, then W_hh for the backward pass.
    const std::int64_t last = gru ? p.hidden_size : 0, width = gates * p.hidden_size;
    const std::int64_t forward = packed_size(p.state_size(), width - last) + packed_size(p.state_size(), last);
    l.weights = take(std::max(forward, packed_size(width, p.state_size())));
  }
  l.bias = take(gates * p.hidden_size);
  l.unprojected = take(projects ? state : 0);
  l.projection = take(p.steps > 1 ? packed_size(p.hidden_size, p.proj_size) : 0);
  l.forward_end = at;
  l.da = take(gates * state);
  l.dhidden = gru ? take(gates * state) : l.da;
  l.previous = take(rows * p.state_size());
  l.dh = take(p.batch * p.state_size());
  l.dc = take(p.batch * p.hidden_size);
  l.dprojected = take(rows * p.proj_size);
  l.dunprojected = take(projects ? p.batch * p.hidden_size : 0);
  l.zeros = take(projects ? p.hidden_size : 0);
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
template <class T>
struct Pass {
  const CellLoops<T> cell;
  const RecurrentParams& p;
  const RecurrentInputs<T>& in;
  const std::int64_t hidden = p.hidden_size, width = cell.gates * hidden, state = p.state_size();
  T *gates, *extra;

  /// Step t of an array whose samples have `size` elements a step.
  template <class U>
  Step<U> at(U* data, std::int64_t t, std::int64_t size) const {
    if (p.batch_first) return {data + t * size, p.steps * size};
    return {data + t * p.batch * size, size};
  }
  /// The place of the k-th step that is computed.
  std::int64_t place(std::int64_t k) const { return p.reverse ? p.steps - 1 - k : k; }
  /// The hidden state or c, `size` elements a sample, before the k-th step; c is only LSTM's.
  Step<const T> before(const T* states, const T* initial, std::int64_t size, std::int64_t k) const {
    return k == 0 ? Step<const T>{initial, size} : at(states, place(k - 1), size);
  }
  const T* c0() const { return in.c0 != nullptr ? in.c0 : in.h0; }
};

/// W as the right operand of a product in every step: packed once for many steps, or read as it is stored for a single
/// one.
template <class T>
class StepWeights {
 public:
  /// op(W), [depth, columns], whose last `last` columns are multiplied on their own.
  StepWeights(const T* w, std::int64_t depth, std::int64_t columns, std::int64_t last, bool transposed,
              std::int64_t steps, T* memory)
      : stored_{w, w + (columns - last) * (transposed ? depth : 1)},
        columns_{columns - last, last},
        depth_(depth),
        row_(transposed ? depth : columns),
        transposed_(transposed),
        packed_(steps > 1) {
    for (int part = 0; packed_ && part < 2; ++part) {
      pack_right(depth, columns_[part], stored_[part], row_, transposed, memory);
      stored_[part] = memory;
      memory += packed_size(depth, columns_[part]);
    }
  }

  /// c = h op(W) for the first columns (`part` 0) or the last (1), or += with `add`.
  void multiply(std::int64_t rows, Step<const T> h, int part, Step<T> c, bool add) const {
    gemm<T>({.m = rows,
             .n = columns_[part],
             .k = depth_,
             .lda = h.row,
             .ldb = row_,
             .ldc = c.row,
             .transpose_b = transposed_,
             .packed_b = packed_,
             .add = add},
            h.data, stored_[part], c.data);
  }

 private:
  const T* stored_[2];
  std::int64_t columns_[2], depth_, row_;
  bool transposed_, packed_;
};

/// How samples are cut into blocks of at most `each`, of which a thread takes up to `together` at a time.
struct SampleBlocks {
  std::int64_t count, each, together, work;
};

/// Packed weights give a row the same bits beside any others, so that the samples of a thread may share what is read of
/// them.
TAPER_FOR_SIZE SampleBlocks cut_samples(const RecurrentParams& p) {
  constexpr std::int64_t kTogether = 64;
  const bool is_packed = p.steps > 1;
  const std::int64_t each = ceil_div(p.batch, ceil_div(p.batch, is_packed ? 2 : 16));
  const std::int64_t work = parallel_work(each * p.hidden_size * gates_of(p.cell), p.hidden_size + 64);
  return {ceil_div(p.batch, each), each, is_packed ? kTogether / each : 1,
          work * std::min<std::int64_t>(p.steps, 1 << 14)};
}

/// Calls `body(first, rows)` for blocks of samples, whose sequences do not depend on each other.
template <class Body>
void for_each_block(const RecurrentParams& p, const Body& body) {
  if (p.batch <= 0) return;
  const SampleBlocks blocks = cut_samples(p);
  parallel_for(blocks.count, blocks.work, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; unit += blocks.together) {
      const std::int64_t begin = unit * blocks.each, some = std::min(blocks.together, last - unit);
      body(begin, std::min(some * blocks.each, p.batch - begin));
    }
  });
}

/// a = W_ih x + b for all steps in one product. The biases of both sides are added here, but for the new gate of GRU.
template <class T>
void input_product(const Pass<T>& s, T* bias) {
  const RecurrentParams& p = s.p;
  const std::int64_t rows = p.steps * p.batch;
  if (s.in.b_ih != nullptr) {
    const std::int64_t both = s.cell.hidden_differs ? s.width - s.hidden : s.width;
    // bias = b_ih + b_hh
    for (std::int64_t j = 0; j < both; ++j) bias[j] = s.in.b_ih[j] + s.in.b_hh[j];
    for (std::int64_t j = both; j < s.width; ++j) bias[j] = s.in.b_ih[j];
  }
  linear_forward<T>({rows, p.input_size, s.width}, s.in.x, s.in.w_ih, s.in.b_ih != nullptr ? bias : nullptr, s.gates);
}

/// The hidden side of the k-th step for some samples.
template <class T>
void hidden_product(const Pass<T>& s, const StepWeights<T>& weights, std::int64_t rows, Step<const T> h, Step<T> gates,
                    Step<T> extra) {
  if (s.cell.hidden_differs) {
    const bool bias = s.in.b_hh != nullptr;
    const std::int64_t shared = s.cell.gates - 1;
    weights.multiply(rows, h, 0, gates, true);
    if (bias)
      for (std::int64_t n = 0; n < rows; ++n) copy_run(s.in.b_hh + shared * s.hidden, s.hidden, extra.sample(n));
    weights.multiply(rows, h, 1, extra, bias);
  } else {
    weights.multiply(rows, h, 0, gates, true);
  }
}

template <class T>
void forward(const CellLoops<T>& cell, const RecurrentParams& p, const RecurrentInputs<T>& in, T* y, T* c_n,
             T* memory) {
  const Layout l = layout_of(p);
  // The plain cells have nothing but y.
  const Pass<T> s{.cell = cell,
                  .p = p,
                  .in = in,
                  .gates = cell.has_extra ? memory + l.gates : y,
                  .extra = cell.has_extra ? memory + l.extra : y};
  input_product(s, memory + l.bias);
  const StepWeights<T> weights(in.w_hh, s.state, s.width, s.cell.hidden_differs ? s.hidden : 0, true, p.steps,
                               memory + l.weights);
  const bool projects = p.proj_size > 0;
  const StepWeights<T> projection(in.w_hr, s.hidden, p.proj_size, 0, true, projects ? p.steps : 1,
                                  memory + l.projection);
  T* const unprojected = projects ? memory + l.unprojected : y;
  for_each_block(p, [&](std::int64_t first, std::int64_t rows) {
    const auto from_first = [first](auto step) { return decltype(step){step.sample(first), step.row}; };
    for (std::int64_t k = 0; k < p.steps; ++k) {
      const Step<const T> h_before = from_first(s.before(y, in.h0, s.state, k));
      const Step<const T> c_before = from_first(s.before(s.extra, s.c0(), s.hidden, k));
      const Step<T> gates = from_first(s.at(s.gates, s.place(k), s.width));
      const Step<T> extra = from_first(s.at(s.extra, s.place(k), s.hidden));
      const Step<T> h = from_first(s.at(unprojected, s.place(k), s.hidden));
      hidden_product(s, weights, rows, h_before, gates, extra);
      for (std::int64_t n = 0; n < rows; ++n)
        s.cell.forward(s.hidden,
                       {gates.sample(n), extra.sample(n), h_before.sample(n), c_before.sample(n), h.sample(n)});
      if (projects) projection.multiply(rows, {h.data, h.row}, 0, from_first(s.at(y, s.place(k), s.state)), false);
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

/// The gradient of h before its projection, for some samples of step t; keeps that of h itself for the gradient of
/// W_hr.
template <class T>
void through_projection(const Pass<T>& s, const Layout& l, std::int64_t first, std::int64_t rows, std::int64_t t,
                        const T* dy, const T* dh, T* memory) {
  const Step<const T> from = s.at(dy, t, s.state);
  const Step<T> kept = s.at(memory + l.dprojected, t, s.state);
  // dh_t = dy_t + what the later step sends
  for (std::int64_t n = 0; n < rows; ++n) {
    const T* sent = dh + n * s.state;
    const T* own = from.sample(first + n);
    T* both = kept.sample(first + n);
    for (std::int64_t j = 0; j < s.state; ++j) both[j] = own[j] + sent[j];
  }
  // the gradient of o tanh(c) = dh_t W_hr
  gemm<T>({.m = rows, .n = s.hidden, .k = s.state, .lda = kept.row, .ldb = s.hidden, .ldc = s.hidden},
          kept.sample(first), s.in.w_hr, memory + l.dunprojected + first * s.hidden);
}

/// The gradients of a for all steps, and of the initial states.
template <class T>
void through_time(const Pass<T>& s, const T* y, const T* dy, const T* dc_n, T* memory,
                  const RecurrentGradients<T>& gradients) {
  const RecurrentParams& p = s.p;
  const Layout l = layout_of(p);
  T *da = memory + l.da, *dhidden = memory + l.dhidden, *previous = memory + l.previous;
  const bool projects = p.proj_size > 0;
  T* const zeros = memory + l.zeros;  // the gradient of h before the projection comes in one part
  if (projects) zero_run(s.hidden, zeros);
  const StepWeights<T> weights(s.in.w_hh, s.width, s.state, 0, false, p.steps, memory + l.weights);
  for_each_block(p, [&](std::int64_t first, std::int64_t rows) {
    const auto from_first = [first](auto step) { return decltype(step){step.sample(first), step.row}; };
    T *dh = memory + l.dh + first * s.state, *dc = memory + l.dc + first * s.hidden;
    T* const unprojected = projects ? memory + l.dunprojected + first * s.hidden : dh;
    zero_run(rows * s.state, dh);
    if (dc_n != nullptr) {
      copy_run(dc_n + first * s.hidden, rows * s.hidden, dc);
    } else {
      zero_run(rows * s.hidden, dc);
    }
    for (std::int64_t k = p.steps - 1; k >= 0; --k) {
      const std::int64_t t = s.place(k);
      const Step<const T> h_before = from_first(s.before(y, s.in.h0, s.state, k));
      const Step<const T> c_before = from_first(s.before(s.extra, s.c0(), s.hidden, k));
      const Step<const T> h = from_first(s.template at<const T>(y, t, s.state));
      const Step<const T> dy_t = from_first(s.template at<const T>(dy, t, s.state));
      const Step<T> gates = from_first(s.at(s.gates, t, s.width)), extra = from_first(s.at(s.extra, t, s.hidden));
      const Step<T> da_t = from_first(s.at(da, t, s.width)), dhidden_t = from_first(s.at(dhidden, t, s.width));
      const Step<T> previous_t = from_first(s.at(previous, t, s.state));
      if (projects) through_projection(s, l, first, rows, t, dy, dh, memory);
      for (std::int64_t n = 0; n < rows; ++n) {
        copy_run(h_before.sample(n), s.state, previous_t.sample(n));
        s.cell.backward(s.hidden, {gates.sample(n), extra.sample(n), h_before.sample(n), c_before.sample(n),
                                   h.sample(n), projects ? zeros : dy_t.sample(n), unprojected + n * s.hidden,
                                   dc + n * s.hidden, da_t.sample(n), dhidden_t.sample(n)});
      }
      // dh_{t-1} = (what the cell sends) + da W_hh
      weights.multiply(rows, {dhidden_t.data, dhidden_t.row}, 0, {dh, s.state}, s.cell.keeps_hidden);
    }
    hand_over(dh, rows * s.state, gradients.h0, first * s.state);
    hand_over(dc, rows * s.hidden, gradients.c0, first * s.hidden);
  });
}

template <class T>
void backward(const CellLoops<T>& cell, const RecurrentParams& p, const RecurrentInputs<T>& in, const T* y, const T* dy,
              const T* dc_n, T* memory, const RecurrentGradients<T>& g) {
  const Layout l = layout_of(p);
  const Pass<T> s{.cell = cell,
                  .p = p,
                  .in = in,
                  .gates = memory + (cell.has_extra ? l.gates : l.da),
                  .extra = memory + (cell.has_extra ? l.extra : l.da)};
  through_time(s, y, dy, dc_n, memory, g);
  const std::int64_t rows = p.steps * p.batch;
  linear_backward<T>({rows, p.input_size, s.width}, memory + l.da, in.x, in.w_ih,
                     {g.x.data, g.w_ih.data, nullptr, g.x.add, g.w_ih.add, false});
  linear_backward<T>({rows, s.state, s.width}, memory + l.dhidden, memory + l.previous, in.w_hh,
                     {nullptr, g.w_hh.data, nullptr, false, g.w_hh.add, false});
  if (g.b_ih.data != nullptr || g.b_hh.data != nullptr) {
    T* const bias = memory + l.bias;
    linear_backward_bias<T>({rows, 0, s.width}, memory + l.da, bias, false);
    hand_over(bias, s.width, g.b_ih, 0);
    if (cell.hidden_differs) linear_backward_bias<T>({rows, 0, s.width}, memory + l.dhidden, bias, false);
    hand_over(bias, s.width, g.b_hh, 0);
  }
  if (p.proj_size > 0)
    linear_backward<T>({rows, p.hidden_size, p.proj_size}, memory + l.dprojected, memory + l.unprojected, in.w_hr,
                       {nullptr, g.w_hr.data, nullptr, false, g.w_hr.add, false});
}

template <class T>
CellLoops<T> cell_of(RecurrentCell cell) {
  switch (cell) {
    case RecurrentCell::rnn_tanh:
      return loops_of<TanhCell, T>();
    case RecurrentCell::rnn_relu:
      return loops_of<ReluCell, T>();
    case RecurrentCell::lstm:
      return loops_of<LstmCell, T>();
    case RecurrentCell::gru:
      break;
  }
  return loops_of<GruCell, T>();
}

}  // namespace

std::int64_t recurrent_memory(const RecurrentParams& p, bool with_backward) {
  const Layout l = layout_of(p);
  return with_backward ? l.end : l.forward_end;
}

template <class T>
void recurrent_forward(const RecurrentParams& p, const RecurrentInputs<T>& in, T* y, T* c_n, T* memory) {
  forward(cell_of<T>(p.cell), p, in, y, c_n, memory);
}

template <class T>
void recurrent_backward(const RecurrentParams& p, const RecurrentInputs<T>& in, const T* y, const T* dy, const T* dc_n,
                        T* memory, const RecurrentGradients<T>& gradients) {
  backward(cell_of<T>(p.cell), p, in, y, dy, dc_n, memory, gradients);
}

#define TAPER_INSTANTIATE_RECURRENT(T)                                                                              \
  template void recurrent_forward(const RecurrentParams&, const RecurrentInputs<T>&, T*, T*, T*);                   \
  template void recurrent_backward(const RecurrentParams&, const RecurrentInputs<T>&, const T*, const T*, const T*, \
                                   T*, const RecurrentGradients<T>&)
TAPER_INSTANTIATE_RECURRENT(float);
#ifndef TAPER_ONLY_FLOAT32
TAPER_INSTANTIATE_RECURRENT(double);
#endif

}  // namespace taper::kernels
