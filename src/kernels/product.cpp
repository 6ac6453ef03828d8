#include "kernels/product.hpp"

#include <new>

#include "kernels/product_vector.hpp"

namespace taper::kernels {

namespace {

/// Rows of the register tile: as many as leave room for two vectors of b, one of a and one product. Six rows use all of
/// 16 registers: with two lanes (float64 in 16 bytes) GCC then keeps a sum in memory, and every step waits for it.
template <class T>
constexpr int kTileRows = kLanes<T> == 2       ? 4
                          : kVectorBytes == 64 ? 12
                                               : 6;

/// Vectors of a tile of `rows` rows: enough independent sums to hide the latency of the additions.
constexpr int tile_vectors(int rows) { return rows == 1 ? 8 : rows <= (kVectorBytes == 64 ? 6 : 3) ? 4 : 2; }

/// Rows of a tile that are found from one pointer: processors add one or two distances to it by themselves.
constexpr int kPointerRows = 3;

/// Keeps the compiler from deriving one pointer from another, for which it would run out of registers.
template <class T>
inline void hide(const T*& x) {
  asm("" : "+r"(x));
}

/// Where a tile's operands lie. A walk over the terms has a pointer to the first of every `kPointerRows` rows of a,
/// P in all, and finds the W vectors of b.
template <class T>
struct Strided {
  Operands<T> x;
  std::int64_t columns;

  Strided at(std::int64_t i, std::int64_t vector) const {
    return {{{x.a.data + i * x.a.row, x.a.row, x.a.column}, {x.b.data + vector * kLanes<T>, x.b.row}},
            columns - vector * kLanes<T>};
  }
  std::int64_t a_row() const { return x.a.row; }
  Vector<T> begun(int, const Vector<T>& sum) const { return sum; }
  std::int64_t origin(std::int64_t vector) const { return vector * kLanes<T>; }
  std::int64_t result(int v) const { return v * kLanes<T>; }
  int count(int v) const { return static_cast<int>(std::min<std::int64_t>(columns - v * kLanes<T>, kLanes<T>)); }

  template <int P, int W>
  struct Walk {
    const T *a[P], *row;
    std::int64_t a_step, b_step;

    Walk(const Strided& s, std::int64_t k) : row(s.x.b.data + k * s.x.b.row), a_step(s.x.a.column), b_step(s.x.b.row) {
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) a[p] = s.x.a.data + k * a_step + p * kPointerRows * s.x.a.row;
    }
    void find(std::int64_t) {}
    const T* b(int v) const { return row + v * kLanes<T>; }
    void next() {
      row += b_step;
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        a[p] += a_step;
        hide(a[p]);
      }
    }
  };
};
template <class T>
struct Listed {
  ListedOperands<T> x;

  Listed at(std::int64_t i, std::int64_t vector) const {
    return {{x.a + i * x.a_row, x.a_row, x.a_term, x.b, x.b_term, x.b_vector + vector, x.c_vector + vector,
             x.c_count + vector, x.bias != nullptr ? x.bias + i : nullptr}};
  }
  std::int64_t a_row() const { return x.a_row; }
  std::int64_t origin(std::int64_t) const { return 0; }
  Vector<T> begun(int r, const Vector<T>& sum) const { return x.bias != nullptr ? sum + x.bias[r] : sum; }
  std::int64_t result(int v) const { return x.c_vector[v]; }
  int count(int v) const { return x.c_count[v]; }

  template <int P, int W>
  struct Walk {
    const T *a[P], *first, *base[W];
    const std::int64_t *a_term, *b_term;
    std::int64_t a_rows, term;

    Walk(const Listed& s, std::int64_t)
        : first(s.x.a), a_term(s.x.a_term), b_term(s.x.b_term), a_rows(kPointerRows * s.x.a_row), term(0) {
#pragma GCC unroll 8
      for (int v = 0; v < W; ++v) {
        base[v] = s.x.b + s.x.b_vector[v];
        hide(base[v]);
      }
    }
    void find(std::int64_t k) {
      term = b_term[k];
      a[0] = first + a_term[k];
#pragma GCC unroll 8
      for (int p = 1; p < P; ++p) {
        hide(a[p - 1]);
        a[p] = a[p - 1] + a_rows;
      }
    }
    const T* b(int v) const { return base[v] + term; }
    void next() {}
  };
};

/// y[i] = v[i] for i < n, or += with `add`; n is mostly the length of a vector.
template <class T>
inline void store_result(const Vector<T>& v, int n, T* y, bool add) {
  if (n == kLanes<T>)
    store(add ? load(y) + v : v, y);
  else
    store_part<T>(v, n, y, add);
}

/// sum = sum over the terms [first, end) of a[r, k] b[k, :] for R rows and W vectors.
template <class T, int R, int W, class Place>
[[gnu::always_inline]] inline void add_terms(std::int64_t first, std::int64_t end, const Place& place,
                                             Vector<T> (&sum)[R][W]) {
  constexpr int pointers = (R + kPointerRows - 1) / kPointerRows;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < W; ++v) sum[r][v] = Vector<T>{};
  typename Place::template Walk<pointers, W> walk(place, first);
  const std::int64_t a_row = place.a_row();
  for (std::int64_t k = first; k < end; ++k) {
    walk.find(k);
    Vector<T> right[W];
#pragma GCC unroll 8
    for (int v = 0; v < W; ++v) right[v] = load(walk.b(v));
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vector<T> left = walk.a[r / kPointerRows][r % kPointerRows * a_row] - Vector<T>{};
#pragma GCC unroll 8
      for (int v = 0; v < W; ++v) sum[r][v] = multiply_add(left, right[v], sum[r][v]);
    }
    walk.next();
  }
}

/// total = the sum of a chain of terms, or += with `more`.
template <class T, int R, int W, class Place>
[[gnu::noinline]] void multiply_chain(std::int64_t first, std::int64_t end, const Place& place, T* total, bool more) {
  Vector<T> sum[R][W];
  add_terms<T, R, W>(first, end, place, sum);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < W; ++v) {
      T* y = total + (r * W + v) * kLanes<T>;
      store(more ? load(y) + sum[r][v] : sum[r][v], y);
    }
}

/// c[r, :] = bias + total + the sum of the terms [first, end) of a[r, k] b[k, :] for R rows and W vectors; without a
/// bias it is += with `add`. `total` is null if the terms are all there are.
template <class T, int R, int W, class Place>
[[gnu::noinline]] void multiply_last(std::int64_t first, std::int64_t end, const Place& place, const T* total, T* c,
                                     std::int64_t ldc, bool add) {
  Vector<T> sum[R][W];
  add_terms<T, R, W>(first, end, place, sum);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < W; ++v) {
      Vector<T> all = sum[r][v];
      if (total != nullptr) all = load(total + (r * W + v) * kLanes<T>) + all;
      store_result<T>(place.begun(r, all), place.count(v), c + r * ldc + place.result(v), add);
    }
}

/// c[r, :] = bias + sum over k of a[r, k] b[k, :], or +=: sums of `kChain` terms, and the sum of those.
template <class T, int R, int W, class Place>
void multiply_tile(std::int64_t depth, const Place& place, T* c, std::int64_t ldc, bool add) {
  if (depth <= kChain<T>) return multiply_last<T, R, W>(0, depth, place, nullptr, c, ldc, add);
  alignas(kVectorBytes) T total[R * W * kLanes<T>];
  std::int64_t k = 0;
  for (; depth - k > kChain<T>; k += kChain<T>) multiply_chain<T, R, W>(k, k + kChain<T>, place, total, k > 0);
  multiply_last<T, R, W>(k, depth, place, total, c, ldc, add);
}

/// The vectors from `j` on of a band of `rows` rows, a multiple of R: tiles of W vectors, then of W / 2, ... 1.
/// The rows run inside the columns, so that the tile's columns of b stay in the first-level cache.
template <class T, int R, int W, class Place>
void multiply_columns(std::int64_t rows, std::int64_t vectors, std::int64_t j, std::int64_t depth, const Place& place,
                      T* c, std::int64_t ldc, bool add) {
  for (; vectors - j >= W; j += W)
    for (std::int64_t i = 0; i < rows; i += R) {
      const Place tile = place.at(i, j);
      multiply_tile<T, R, W>(depth, tile, c + i * ldc + place.origin(j), ldc, add);
    }
  if constexpr (W > 1)
    if (j < vectors) multiply_columns<T, R, W / 2>(rows, vectors, j, depth, place, c, ldc, add);
}

/// The rows that are left over when the block is cut into tiles of full height: one band of R rows.
template <class T, int R, class Place>
void multiply_last_rows(std::int64_t rows, std::int64_t vectors, std::int64_t depth, const Place& place, T* c,
                        std::int64_t ldc, bool add) {
  if (rows == R) return multiply_columns<T, R, tile_vectors(R)>(rows, vectors, 0, depth, place, c, ldc, add);
  if constexpr (R > 1) multiply_last_rows<T, R - 1>(rows, vectors, depth, place, c, ldc, add);
}

template <class T, class Place>
void multiply_tiles(std::int64_t rows, std::int64_t columns, std::int64_t depth, const Place& place, T* c,
                    std::int64_t ldc, bool add) {
  const std::int64_t last = rows % kTileRows<T>, full = rows - last;
  const std::int64_t vectors = (columns + kLanes<T> - 1) / kLanes<T>;
  if (full > 0)
    multiply_columns<T, kTileRows<T>, tile_vectors(kTileRows<T>)>(full, vectors, 0, depth, place, c, ldc, add);
  if (last > 0)
    multiply_last_rows<T, kTileRows<T> - 1>(last, vectors, depth, place.at(full, 0), c + full * ldc, ldc, add);
}

/// to[k, j] = from[j, k] for a square of one 16-byte vector a side.
inline void turn_square(const float* from, std::int64_t from_row, float* to, std::int64_t to_row) {
  typedef float Quad __attribute__((vector_size(16)));
  Quad x[4];
  for (int j = 0; j < 4; ++j) std::memcpy(&x[j], from + j * from_row, 16);
  const Quad low01 = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5);
  const Quad low23 = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5);
  const Quad high01 = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7);
  const Quad high23 = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
  const Quad y[4] = {
      __builtin_shufflevector(low01, low23, 0, 1, 4, 5), __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
      __builtin_shufflevector(high01, high23, 0, 1, 4, 5), __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
  for (int k = 0; k < 4; ++k) std::memcpy(to + k * to_row, &y[k], 16);
}

inline void turn_square(const double* from, std::int64_t from_row, double* to, std::int64_t to_row) {
  const double x[4] = {from[0], from[1], from[from_row], from[from_row + 1]};
  to[0] = x[0], to[1] = x[2], to[to_row] = x[1], to[to_row + 1] = x[3];
}

template <class T>
struct OwnedScratch : Scratch<T> {
  void* memory;

  OwnedScratch() {
    constexpr std::int64_t block = kResultSize;
    constexpr std::size_t bytes = static_cast<std::size_t>(block) * sizeof(double) +
                                  static_cast<std::size_t>(kLeftSize<T> + kRightSize<T> + 2 * block) * sizeof(T);
    memory = ::operator new (bytes, std::align_val_t{64});
    this->sums = static_cast<double*>(memory);
    this->result = reinterpret_cast<T*>(this->sums + block);
    this->part = this->result + block;
    this->left = this->part + block;
    this->right = this->left + kLeftSize<T>;
  }
  OwnedScratch(const OwnedScratch&) = delete;
  ~OwnedScratch() { ::operator delete (memory, std::align_val_t{64}); }
};

}  // namespace

template <class T>
void multiply_block(std::int64_t rows, std::int64_t columns, std::int64_t depth, const Operands<T>& x, T* c,
                    std::int64_t ldc, bool add) {
  multiply_tiles<T>(rows, columns, depth, Strided<T>{x, columns}, c, ldc, add);
}

template <class T>
void multiply_block(std::int64_t rows, std::int64_t columns, std::int64_t depth, const ListedOperands<T>& x, T* c,
                    std::int64_t ldc, bool add) {
  multiply_tiles<T>(rows, columns, depth, Listed<T>{x}, c, ldc, add);
}

template <class T>
const Scratch<T>& scratch() noexcept {
  thread_local const OwnedScratch<T> own;
  return own;
}

template <class T>
void pack_transposed(const T* x, std::int64_t ldx, std::int64_t columns, std::int64_t depth, T* packed,
                     std::int64_t row) {
  // packed[k, j] = x[j, k]
  // Squares of one 16-byte vector a side; the last one of a row or column overlaps the one before.
  constexpr std::int64_t side = 16 / static_cast<std::int64_t>(sizeof(T));
  if (columns < side || depth < side) {
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t k = 0; k < depth; ++k) packed[k * row + j] = x[j * ldx + k];
    return;
  }
  for (std::int64_t j = 0; j < columns; j += side) {
    const std::int64_t left = std::min(j, columns - side);
    for (std::int64_t k = 0; k < depth; k += side) {
      const std::int64_t top = std::min(k, depth - side);
      turn_square(x + left * ldx + top, ldx, packed + top * row + left, row);
    }
  }
}

Grid cut(std::int64_t rows, std::int64_t columns, std::int64_t depth, std::int64_t batch) {
  // Equal steps, in whole register tiles.
  const auto step = [](std::int64_t n, std::int64_t largest, std::int64_t multiple) {
    const std::int64_t parts = n / largest + (n % largest != 0);
    const std::int64_t each = n / parts + (n % parts != 0);
    return std::min(n, (each + multiple - 1) / multiple * multiple);
  };
  const auto units = [](std::int64_t n, std::int64_t each) { return n / each + (n % each != 0); };
  Grid g{step(rows, kBlockRows, 12), step(columns, kBlockColumns, 16), 0, 0, 0};
  // Enough units for several threads, but none below a quarter of a million products: each packs its own operands.
  const double products = static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(depth);
  const double wanted = std::min(16.0, products * static_cast<double>(batch) / 1048576);
  const auto enough = [&] {
    return static_cast<double>(units(rows, g.row_step)) * static_cast<double>(units(columns, g.column_step)) *
               static_cast<double>(batch) >=
           wanted;
  };
  if (!enough()) g.column_step = step(columns, 64, 16);
  if (!enough()) g.row_step = step(rows, 72, 12);
  if (!enough()) g.column_step = step(columns, 32, 16);
  g.row_units = units(rows, g.row_step);
  g.column_units = units(columns, g.column_step);
  g.work = parallel_work(g.row_step * g.column_step, depth);
  return g;
}

template void multiply_block(std::int64_t, std::int64_t, std::int64_t, const Operands<float>&, float*, std::int64_t,
                             bool);
template void multiply_block(std::int64_t, std::int64_t, std::int64_t, const Operands<double>&, double*, std::int64_t,
                             bool);
template void multiply_block(std::int64_t, std::int64_t, std::int64_t, const ListedOperands<float>&, float*,
                             std::int64_t, bool);
template void multiply_block(std::int64_t, std::int64_t, std::int64_t, const ListedOperands<double>&, double*,
                             std::int64_t, bool);
template const Scratch<float>& scratch<float>() noexcept;
template const Scratch<double>& scratch<double>() noexcept;
template void pack_transposed(const float*, std::int64_t, std::int64_t, std::int64_t, float*, std::int64_t);
template void pack_transposed(const double*, std::int64_t, std::int64_t, std::int64_t, double*, std::int64_t);

}  // namespace taper::kernels
