#pragma once

#include <cstdint>

#include "kernels/loop_hints.hpp"
#include "kernels/vector_math.hpp"

// The gates of one step and one sample, forward and backward; the products are `recurrent.cpp`'s. The functions of a cell
// take in what they call, whatever its length: a loop with a call left in it is not vectorised.

namespace taper::kernels {

/// `gates` comes in as a and goes out as the gates' values; `extra` is c (LSTM) or W_hn h + b_hn (GRU).
template <class T>
struct CellForward {
  T *gates, *extra;
  const T *h_before, *c_before;
  T* h;
};

/// `dh` and `dc` come in as what later steps send back and go out as what goes to the step before, without what the
/// product with W_hh will add. `da` receives the gradient of a on the side of the input, `dhidden` that on the side of
/// the hidden state, the same memory for all but GRU.
template <class T>
struct CellBackward {
  const T *gates, *extra, *h_before, *c_before, *h, *dy;
  T *dh, *dc, *da, *dhidden;
};

struct TanhCell {
  static constexpr std::int64_t gates = 1;
  static constexpr bool has_extra = false, hidden_differs = false, keeps_hidden = false;

  template <class T>
  [[gnu::flatten]] static void forward(std::int64_t n, const CellForward<T>& s) {
    // h = tanh(a)
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t j = 0; j < n; ++j) s.h[j] = vector_tanh(s.gates[j]);
  }
  template <class T>
  [[gnu::flatten]] static void backward(std::int64_t n, const CellBackward<T>& s) {
    // da = dh (1 - h^2)
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t j = 0; j < n; ++j) s.da[j] = (s.dy[j] + s.dh[j]) * (1 - s.h[j] * s.h[j]);
  }
};

struct ReluCell {
  static constexpr std::int64_t gates = 1;
  static constexpr bool has_extra = false, hidden_differs = false, keeps_hidden = false;

  template <class T>
  [[gnu::flatten]] static void forward(std::int64_t n, const CellForward<T>& s) {
    // h = max(a, 0); NaN stays NaN
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t j = 0; j < n; ++j) s.h[j] = s.gates[j] <= 0 ? T(0) : s.gates[j];
  }
  template <class T>
  [[gnu::flatten]] static void backward(std::int64_t n, const CellBackward<T>& s) {
    // da = dh where h > 0
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t j = 0; j < n; ++j) s.da[j] = s.h[j] <= 0 ? T(0) : s.dy[j] + s.dh[j];
  }
};

struct LstmCell {
  static constexpr std::int64_t gates = 4;
  static constexpr bool has_extra = true, hidden_differs = false, keeps_hidden = false;

  template <class T>
  [[gnu::flatten]] static void forward(std::int64_t n, const CellForward<T>& s) {
    T *gi = s.gates, *gf = gi + n, *gg = gf + n, *go = gg + n;
    // c_t = f c_{t-1} + i g,  h_t = o tanh(c_t)
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t j = 0; j < n; ++j) {
      const T i = vector_sigmoid(gi[j]), f = vector_sigmoid(gf[j]), g = vector_tanh(gg[j]), o = vector_sigmoid(go[j]);
      const T c = f * s.c_before[j] + i * g;
      gi[j] = i;
      gf[j] = f;
      gg[j] = g;
      go[j] = o;
      s.extra[j] = c;
      s.h[j] = o * vector_tanh(c);
    }
  }
  template <class T>
  [[gnu::flatten]] static void backward(std::int64_t n, const CellBackward<T>& s) {
    const T *gi = s.gates, *gf = gi + n, *gg = gf + n, *go = gg + n;
    T *di = s.da, *df = di + n, *dg = df + n, *dout = dg + n;
    // dc_t += dh o (1 - tanh(c)^2);  di = dc g i (1 - i), df = dc c_{t-1} f (1 - f), dg = dc i (1 - g^2),
    // do = dh tanh(c) o (1 - o);  dc_{t-1} = dc f
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t j = 0; j < n; ++j) {
      const T dh = s.dy[j] + s.dh[j], t = vector_tanh(s.extra[j]);
      const T i = gi[j], f = gf[j], g = gg[j], o = go[j];
      const T dc = s.dc[j] + dh * o * (1 - t * t);
      di[j] = dc * g * (i * (1 - i));
      df[j] = dc * s.c_before[j] * (f * (1 - f));
      dg[j] = dc * i * (1 - g * g);
      dout[j] = dh * t * (o * (1 - o));
      s.dc[j] = dc * f;
    }
  }
};

struct GruCell {
  static constexpr std::int64_t gates = 3;
  static constexpr bool has_extra = true, hidden_differs = true, keeps_hidden = true;

  template <class T>
  [[gnu::flatten]] static void forward(std::int64_t n, const CellForward<T>& s) {
    T *gr = s.gates, *gz = gr + n, *gn = gz + n;
    // n = tanh(a_n + r hidden),  h_t = n + z (h_{t-1} - n)
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t j = 0; j < n; ++j) {
      const T r = vector_sigmoid(gr[j]), z = vector_sigmoid(gz[j]), m = vector_tanh(gn[j] + r * s.extra[j]);
      gr[j] = r;
      gz[j] = z;
      gn[j] = m;
      s.h[j] = m + z * (s.h_before[j] - m);
    }
  }
  template <class T>
  [[gnu::flatten]] static void backward(std::int64_t n, const CellBackward<T>& s) {
    const T *gr = s.gates, *gz = gr + n, *gn = gz + n;
    T *dr = s.da, *dz = dr + n, *dn = dz + n, *hr = s.dhidden, *hz = hr + n, *hn = hz + n;
    // dn = dh (1 - z) (1 - n^2), dz = dh (h_{t-1} - n) z (1 - z), dr = dn hidden r (1 - r);
    // on the hidden side dr, dz and dn r;  dh_{t-1} = dh z
    TAPER_INDEPENDENT_TURNS
    for (std::int64_t j = 0; j < n; ++j) {
      const T dh = s.dy[j] + s.dh[j], r = gr[j], z = gz[j], m = gn[j];
      const T d_new = dh * (1 - z) * (1 - m * m);
      const T d_update = dh * (s.h_before[j] - m) * (z * (1 - z));
      const T d_reset = d_new * s.extra[j] * (r * (1 - r));
      dr[j] = hr[j] = d_reset;
      dz[j] = hz[j] = d_update;
      dn[j] = d_new;
      hn[j] = d_new * r;
      s.dh[j] = dh * z;
    }
  }
};

/// A cell as a value, so that what surrounds its loops is compiled once for all of them.
template <class T>
struct CellLoops {
  std::int64_t gates;
  bool has_extra, hidden_differs, keeps_hidden;
  void (*forward)(std::int64_t n, const CellForward<T>& s);
  void (*backward)(std::int64_t n, const CellBackward<T>& s);
};
template <class Cell, class T>
constexpr CellLoops<T> loops_of() {
  return {Cell::gates,        Cell::has_extra,           Cell::hidden_differs,
          Cell::keeps_hidden, Cell::template forward<T>, Cell::template backward<T>};
}

}  // namespace taper::kernels
