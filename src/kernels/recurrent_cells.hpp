#pragma once

#include <cstdint>

#include "kernels/packs.hpp"
#include "kernels/vector_math.hpp"

// The gates of one step and one sample, forward and backward; the products are `recurrent.cpp`'s. The functions of a
// cell take in what they call, whatever its length: a loop with a call left in it is not vectorised. Going forward,
// what waits for one function's value to call the next has a loop of its own: short ones leave the processor room to
// work on several packs at once.

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
    for (AnyPack at{0, n}; at; at.next<T>()) at.store(s.h, vector_tanh(at(s.gates)));
  }
  template <class T>
  [[gnu::flatten]] static void backward(std::int64_t n, const CellBackward<T>& s) {
    // da = dh (1 - h^2)
    for (AnyPack at{0, n}; at; at.next<T>()) {
      const Vector<T> h = at(s.h);
      at.store(s.da, (at(s.dy) + at(s.dh)) * (1 - h * h));
    }
  }
};

struct ReluCell {
  static constexpr std::int64_t gates = 1;
  static constexpr bool has_extra = false, hidden_differs = false, keeps_hidden = false;

  template <class T>
  [[gnu::flatten]] static void forward(std::int64_t n, const CellForward<T>& s) {
    // h = max(a, 0); NaN stays NaN
    for (AnyPack at{0, n}; at; at.next<T>()) {
      const Vector<T> a = at(s.gates);
      at.store(s.h, a <= 0 ? Vector<T>{} : a);
    }
  }
  template <class T>
  [[gnu::flatten]] static void backward(std::int64_t n, const CellBackward<T>& s) {
    // da = dh where h > 0
    for (AnyPack at{0, n}; at; at.next<T>()) at.store(s.da, at(s.h) <= 0 ? Vector<T>{} : at(s.dy) + at(s.dh));
  }
};

struct LstmCell {
  static constexpr std::int64_t gates = 4;
  static constexpr bool has_extra = true, hidden_differs = false, keeps_hidden = false;

  template <class T>
  [[gnu::flatten]] static void forward(std::int64_t n, const CellForward<T>& s) {
    T *gi = s.gates, *gf = gi + n, *gg = gf + n, *go = gg + n;
    // c_t = f c_{t-1} + i g,  h_t = o tanh(c_t)
    for (AnyPack at{0, 2 * n}; at; at.next<T>()) at.store(gi, vector_sigmoid(at(gi)));
    for (AnyPack at{0, n}; at; at.next<T>()) {
      const Vector<T> g = vector_tanh(at(gg));
      at.store(gg, g);
      at.store(go, vector_sigmoid(at(go)));
      at.store(s.extra, fused(at(gf), at(s.c_before), at(gi) * g));
    }
    for (AnyPack at{0, n}; at; at.next<T>()) at.store(s.h, at(go) * vector_tanh(at(s.extra)));
  }
  template <class T>
  [[gnu::flatten]] static void backward(std::int64_t n, const CellBackward<T>& s) {
    const T *gi = s.gates, *gf = gi + n, *gg = gf + n, *go = gg + n;
    T *di = s.da, *df = di + n, *dg = df + n, *dout = dg + n;
    // dc_t += dh o (1 - tanh(c)^2);  di = dc g i (1 - i), df = dc c_{t-1} f (1 - f), dg = dc i (1 - g^2),
    // do = dh tanh(c) o (1 - o);  dc_{t-1} = dc f
    for (AnyPack at{0, n}; at; at.next<T>()) {
      const Vector<T> dh = at(s.dy) + at(s.dh), t = vector_tanh(at(s.extra));
      const Vector<T> i = at(gi), f = at(gf), g = at(gg), o = at(go);
      const Vector<T> dc = at(s.dc) + dh * o * (1 - t * t);
      at.store(di, dc * g * (i * (1 - i)));
      at.store(df, dc * at(s.c_before) * (f * (1 - f)));
      at.store(dg, dc * i * (1 - g * g));
      at.store(dout, dh * t * (o * (1 - o)));
      at.store(s.dc, dc * f);
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
    for (AnyPack at{0, 2 * n}; at; at.next<T>()) at.store(gr, vector_sigmoid(at(gr)));
    for (AnyPack at{0, n}; at; at.next<T>()) {
      const Vector<T> m = vector_tanh(fused(at(gr), at(s.extra), at(gn)));
      at.store(gn, m);
      at.store(s.h, fused(at(gz), at(s.h_before) - m, m));
    }
  }
  template <class T>
  [[gnu::flatten]] static void backward(std::int64_t n, const CellBackward<T>& s) {
    const T *gr = s.gates, *gz = gr + n, *gn = gz + n;
    T *dr = s.da, *dz = dr + n, *dn = dz + n, *hr = s.dhidden, *hz = hr + n, *hn = hz + n;
    // dn = dh (1 - z) (1 - n^2), dz = dh (h_{t-1} - n) z (1 - z), dr = dn hidden r (1 - r);
    // on the hidden side dr, dz and dn r;  dh_{t-1} = dh z
    for (AnyPack at{0, n}; at; at.next<T>()) {
      const Vector<T> dh = at(s.dy) + at(s.dh), r = at(gr), z = at(gz), m = at(gn);
      const Vector<T> d_new = dh * (1 - z) * (1 - m * m);
      const Vector<T> d_update = dh * (at(s.h_before) - m) * (z * (1 - z));
      const Vector<T> d_reset = d_new * at(s.extra) * (r * (1 - r));
      at.store(dr, d_reset);
      at.store(hr, d_reset);
      at.store(dz, d_update);
      at.store(hz, d_update);
      at.store(dn, d_new);
      at.store(hn, d_new * r);
      at.store(s.dh, dh * z);
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
