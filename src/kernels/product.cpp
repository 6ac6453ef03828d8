#include "kernels/product.hpp"

#include <new>
#include <utility>

#include "kernels/product_vector.hpp"

namespace taper::kernels {

namespace {

/// Rows of the tallest register tile: as many as leave room for two vectors of b, one of a and one product. Six rows
/// use all of 16 registers: with two lanes (float64 in 16 bytes) GCC then keeps a sum in memory, and every step waits
/// for it.
template <class T>
constexpr int kTileRows = kLanes<T> == 2       ? 4
                          : kVectorBytes == 64 ? 12
                                               : 6;

/// Vectors of the widest tile of `rows` rows: enough independent sums to hide the latency of the additions.
constexpr int widest(std::int64_t rows) { return rows == 1 ? 8 : rows <= (kVectorBytes == 64 ? 6 : 2) ? 4 : 2; }

/// Rows of a tile that are found from one pointer: processors add one or two distances to it by themselves.
constexpr int kPointerRows = 3;

/// Keeps the compiler from deriving one pointer from another, for which it would run out of registers.
template <class T>
inline void hide(const T*& x) {
  asm("" : "+r"(x));
}

/// Rows of vectors: vector v of row r is at `data[r * row + vector[v]]`.
template <class T>
struct Vectors {
  T* data;
  std::int64_t row;
  const std::int64_t* vector;
};

/// What a tile multiplies, as in `ListedOperands`, and where its sums go: to = from + the sum.
template <class T>
struct Tile {
  const T* a;
  std::int64_t a_row;
  const std::int64_t* a_term;
  const T* b;
  const std::int64_t *b_term, *b_vector;
  Vectors<const T> from;
  Vectors<T> to;
};

/// to[r, :] = from[r, :] + sum over the terms [first, end) of a[r, k] b[k, :] for R rows and W vectors.
template <class T, int R, int W>
void multiply_tile(const Tile<T>& t, std::int64_t first, std::int64_t end) {
  const std::int64_t a_row = t.a_row;
  const T* column[W];
#pragma GCC unroll 8
  for (int v = 0; v < W; ++v) {
    column[v] = t.b + t.b_vector[v];
    hide(column[v]);
  }
  Vector<T> sum[R][W];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < W; ++v) sum[r][v] = Vector<T>{};
  for (std::int64_t k = first; k < end; ++k) {
    const T* a = t.a + t.a_term[k];
    const std::int64_t term = t.b_term[k];
    Vector<T> right[W];
#pragma GCC unroll 8
    for (int v = 0; v < W; ++v) right[v] = load(column[v] + term);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      if (r > 0 && r % kPointerRows == 0) {
        a += kPointerRows * a_row;
        hide(a);
      }
      const Vector<T> left = a[r % kPointerRows * a_row] - Vector<T>{};
#pragma GCC unroll 8
      for (int v = 0; v < W; ++v) sum[r][v] = multiply_add(left, right[v], sum[r][v]);
    }
  }
  const std::int64_t from_row = t.from.row, to_row = t.to.row;
  const T* from[W];
  T* to[W];
#pragma GCC unroll 8
  for (int v = 0; v < W; ++v) {
    from[v] = t.from.data + t.from.vector[v];
    to[v] = t.to.data + t.to.vector[v];
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < W; ++v) {
      store(load(from[v]) + sum[r][v], to[v]);
      from[v] += from_row;
      to[v] += to_row;
    }
}

template <class T>
using TileFunction = void (*)(const Tile<T>&, std::int64_t, std::int64_t);

/// The tiles of one height for 1, 2, 4 and 8 vectors.
template <class T>
struct TileWidths {
  TileFunction<T> of[4];

  TileFunction<T> operator[](int width) const { return of[__builtin_ctz(static_cast<unsigned>(width))]; }
};
template <class T, int R>
constexpr TileWidths<T> tile_widths() {
  TileWidths<T> tiles{{multiply_tile<T, R, 1>, multiply_tile<T, R, 2>}};
  if constexpr (widest(R) >= 4) tiles.of[2] = multiply_tile<T, R, 4>;
  if constexpr (widest(R) >= 8) tiles.of[3] = multiply_tile<T, R, 8>;
  return tiles;
}
template <class T, int... I>
const TileWidths<T>* all_tiles(std::integer_sequence<int, I...>) {
  static constexpr TileWidths<T> kTiles[] = {tile_widths<T, I + 1>()...};
  return kTiles;
}

/// The first vectors of a row next to each other, and one vector for all.
template <class T>
constexpr std::int64_t kSide[8] = {
    0, kLanes<T>, 2 * kLanes<T>, 3 * kLanes<T>, 4 * kLanes<T>, 5 * kLanes<T>, 6 * kLanes<T>, 7 * kLanes<T>};
constexpr std::int64_t kSame[8] = {};

/// c = total, or += with `add`, for `rows` rows of `width` vectors, of which only the first `count[v]` elements count.
template <class T>
void add_tile(std::int64_t rows, int width, const T* total, const int* count, const Vectors<T>& c, bool add) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (int v = 0; v < width; ++v, total += kLanes<T>) {
      T* y = c.data + r * c.row + c.vector[v];
      if (count[v] == kLanes<T>)
        store(add ? load(y) + load(total) : load(total), y);
      else
        store_part<T>(load(total), count[v], y, add);
    }
}

/// c[r, :] = from[r, :] + sum over k of a[r, k] b[k, :], or += with `add`, for a tile of `rows` rows and `width`
/// vectors, `whole` if all elements count: sums of `kChain` terms, and the sum of those.
template <class T>
inline void sum_tile(TileFunction<T> multiply, std::int64_t depth, Tile<T>& tile, const Vectors<T>& c,
                     std::int64_t rows, int width, const int* count, bool whole, bool add) {
  alignas(kVectorBytes) T total[2 * kTileRows<T> * kLanes<T>];
  const std::int64_t row = width * kLanes<T>;
  tile.to = {total, row, kSide<T>};
  // The rows of c are far from each other, and are needed after the last term.
  if (depth >= 64)
    for (std::int64_t r = 0; r < rows; ++r)
      for (int v = 0; v < width; ++v) __builtin_prefetch(c.data + r * c.row + c.vector[v]);
  std::int64_t k = 0;
  for (; depth - k > kChain<T>; k += kChain<T>) {
    multiply(tile, k, k + kChain<T>);
    tile.from = {total, row, kSide<T>};
  }
  if (whole && (!add || k == 0)) {
    if (add) tile.from = {c.data, c.row, c.vector};
    tile.to = c;
    return multiply(tile, k, depth);
  }
  multiply(tile, k, depth);
  add_tile<T>(rows, width, total, count, c, add);
}

typedef float Quad __attribute__((vector_size(16)));

/// A vector of the 16 bytes at each of the pointers `x + offset[step * q]`.
template <class T>
inline Vector<T> load_quads(const T* x, const std::int64_t* offset, std::int64_t step) {
  const auto quad = [&](std::int64_t q) {
    Quad v;
    std::memcpy(&v, x + offset[q * step], sizeof v);
    return v;
  };
#if defined(__AVX__)
  const __m256 low = _mm256_insertf128_ps(_mm256_castps128_ps256(quad(0)), quad(1), 1);
#if defined(__AVX512F__)
  const __m256 high = _mm256_insertf128_ps(_mm256_castps128_ps256(quad(2)), quad(3), 1);
  return (Vector<T>)_mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
#else
  return (Vector<T>)low;
#endif
#else
  return (Vector<T>)quad(0);
#endif
}

/// The first (`High` = 0) or second halves of the 16-byte parts of two vectors, their elements taking turns.
template <class T, int High, int... I>
inline Vector<T> interleave(const Vector<T>& a, const Vector<T>& b, std::integer_sequence<int, I...>) {
  constexpr int n = kLanes<T>, quad = 16 / static_cast<int>(sizeof(T));
  return __builtin_shufflevector(a, b, (I / quad * quad + High * quad / 2 + I % quad / 2 + (I % 2 != 0 ? n : 0))...);
}

/// to[k, j] = x[offset[j] + k] for the first n elements of a vector of j and 16 bytes of k.
template <class T>
inline void turn_strip(const T* x, const std::int64_t* offset, int n, T* to, std::int64_t row) {
  constexpr auto lanes = std::make_integer_sequence<int, kLanes<T>>();
  constexpr int quad = 16 / static_cast<int>(sizeof(T));
  Vector<T> v[quad];
  for (int r = 0; r < quad; ++r) v[r] = load_quads(x, offset + r, quad);
  // Two rounds of card shuffling turn four rows of four, one turns two of two.
  for (int round = 1; round < quad; round *= 2) {
    Vector<T> w[quad];
    for (int r = 0; r < quad / 2; ++r) {
      w[2 * r] = interleave<T, 0>(v[r], v[r + quad / 2], lanes);
      w[2 * r + 1] = interleave<T, 1>(v[r], v[r + quad / 2], lanes);
    }
    for (int r = 0; r < quad; ++r) v[r] = w[r];
  }
  if (n == kLanes<T>)
    for (int r = 0; r < quad; ++r) store(v[r], to + r * row);
  else
    for (int r = 0; r < quad; ++r) store_part<T>(v[r], n, to + r * row, false);
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
void multiply_block(std::int64_t rows, std::int64_t columns, std::int64_t depth, const ListedOperands<T>& x, T* c,
                    std::int64_t ldc, bool add) {
  alignas(kVectorBytes) static constexpr T kZeros[kLanes<T>] = {};
  alignas(kVectorBytes) T bias[kBlockRows * kLanes<T>];
  Vectors<const T> from{kZeros, 0, kSame};
  if (x.bias != nullptr) {
    for (std::int64_t r = 0; r < rows; ++r) store(x.bias[r] - Vector<T>{}, bias + r * kLanes<T>);
    from = {bias, kLanes<T>, kSame};
  }
  // Tiles as tall as each other. The rows run inside the columns, so that the tile's columns of b stay in the
  // first-level cache.
  const TileWidths<T>* const all = all_tiles<T>(std::make_integer_sequence<int, kTileRows<T>>());
  const std::int64_t tiles = (rows + kTileRows<T> - 1) / kTileRows<T>, least = rows / tiles, taller = rows % tiles;
  const std::int64_t vectors = (columns + kLanes<T> - 1) / kLanes<T>;
  int width = widest(least + (taller > 0));
  for (std::int64_t v = 0; v < vectors; v += width) {
    while (width > vectors - v) width /= 2;
    bool whole = true;
    for (int i = 0; i < width; ++i) whole = whole && x.c_count[v + i] == kLanes<T>;
    Tile<T> tile{x.a, x.a_row, x.a_term, x.b, x.b_term, x.b_vector + v, from, {}};
    std::int64_t i = 0;
    for (std::int64_t n = 0; n < tiles; ++n) {
      const std::int64_t height = least + (n < taller);
      tile.a = x.a + i * x.a_row;
      tile.from = {from.data + i * from.row, from.row, from.vector};
      sum_tile<T>(all[height - 1][width], depth, tile, {c + i * ldc, ldc, x.c_vector + v}, height, width, x.c_count + v,
                  whole, add);
      i += height;
    }
  }
}

template <class T>
void multiply_block(std::int64_t rows, std::int64_t columns, std::int64_t depth, const Operands<T>& x, T* c,
                    std::int64_t ldc, bool add) {
  constexpr std::int64_t most = kBlockColumns / kLanes<T>;
  std::int64_t a_term[kBlockDepth], b_term[kBlockDepth], vector[most];
  int count[most];
  for (std::int64_t k = 0; k < depth; ++k) {
    a_term[k] = k * x.a.column;
    b_term[k] = k * x.b.row;
  }
  for (std::int64_t v = 0; v * kLanes<T> < columns; ++v) {
    vector[v] = v * kLanes<T>;
    count[v] = static_cast<int>(std::min<std::int64_t>(columns - vector[v], kLanes<T>));
  }
  multiply_block<T>(rows, columns, depth, {x.a.data, x.a.row, a_term, x.b.data, b_term, vector, vector, count}, c, ldc,
                    add);
}

template <class T>
const Scratch<T>& scratch() noexcept {
  thread_local const OwnedScratch<T> own;
  return own;
}

template <class T>
void pack_transposed(const T* x, std::int64_t ldx, std::int64_t columns, std::int64_t depth, T* packed,
                     std::int64_t row) {
  constexpr std::int64_t quad = 16 / static_cast<std::int64_t>(sizeof(T));
  // packed[k, j] = x[j, k]
  for (std::int64_t j = 0; j < columns; j += kLanes<T>) {
    const int n = static_cast<int>(std::min<std::int64_t>(kLanes<T>, columns - j));
    std::int64_t offset[kLanes<T>];
    for (std::int64_t i = 0; i < kLanes<T>; ++i) offset[i] = std::min(j + i, columns - 1) * ldx;
    T* to = packed + j;
    if (depth >= quad) {
      // The last strip overlaps the one before.
      for (std::int64_t k = 0; k < depth - quad; k += quad) turn_strip(x + k, offset, n, to + k * row, row);
      turn_strip(x + depth - quad, offset, n, to + (depth - quad) * row, row);
    } else {
      for (std::int64_t k = 0; k < depth; ++k)
        for (int i = 0; i < n; ++i) to[k * row + i] = x[offset[i] + k];
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
