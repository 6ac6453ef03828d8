#pragma once

#include <cstring>
#include <utility>

#include "kernels/product_vector.hpp"

/// The register tiles that products are made of; for product.cpp alone.
namespace taper::kernels {

/// Rows of the tallest register tile: as many as leave room for two vectors of b, one of a and one product. Six rows
/// use all of 16 registers: with two lanes (float64 in 16 bytes) GCC then keeps a sum in memory, and every step waits
/// for it.
template <class T>
inline constexpr int kTileRows = kLanes<T> == 2       ? 4
                                 : kVectorWidth == 64 ? 12
                                                      : 6;

/// Rows of the tallest tile of four vectors.
inline constexpr int kWideRows = kVectorWidth == 64 ? 6 : 2;

/// Vectors of the widest tile of `rows` rows: enough independent sums to hide the latency of the additions.
constexpr int widest(std::int64_t rows) { return rows == 1 ? 8 : rows <= kWideRows ? 4 : 2; }

/// Vectors of the tiles that large products are made of. With as many sums, wide tiles load less for each than tall
/// ones.
inline constexpr int kMainWidth = kVectorWidth == 64 ? 4 : 2;

/// Rows of a tile that are found from one pointer: processors add one or two distances to it by themselves.
inline constexpr int kPointerRows = 3;

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

/// The first vectors of a row next to each other, and one vector for all.
template <class T>
inline constexpr std::int64_t kSide[8] = {
    0, kLanes<T>, 2 * kLanes<T>, 3 * kLanes<T>, 4 * kLanes<T>, 5 * kLanes<T>, 6 * kLanes<T>, 7 * kLanes<T>};
inline constexpr std::int64_t kSame[8] = {};

/// What a tile multiplies, as in `ListedOperands`, and where its sums go: to = from + the sum.
template <class T>
struct RegisterTile {
  const T* a;
  std::int64_t a_row;
  const std::int64_t* a_term;
  std::int64_t a_step;
  const T* b;
  const std::int64_t* b_term;
  std::int64_t b_step;
  const std::int64_t* b_vector;
  Vectors<const T> from;
  Vectors<T> to;
};

/// Terms that a tile of `width` vectors takes at once. Tiles that sum several chains by themselves take up to a tenth
/// less time than when they are called for each, and more room.
template <class T>
constexpr std::int64_t tile_depth(int width) {
  const bool pays = kVectorWidth == 32 || (kVectorWidth == 64 && width == kMainWidth && sizeof(T) == sizeof(float));
  return pays ? kDeepBlock : kChain<T>;
}

/// Operands of a tile whose terms are looked up in their lists, not a step apart.
enum Lookups { kNeither = 0, kA = 1, kB = 2, kBoth = 3 };

/// to[r, :] = from[r, :] + sum over the terms [first, end) of a[r, k] b[k, :] for R rows and W vectors V: at most
/// `tile_depth(W)`, in chains. Vectors of a tile that looks nothing up lie side by side in pairs.
template <class T, int R, int W, int lookups = kBoth, class V = Vector<T>>
void multiply_tile(const RegisterTile<T>& t, std::int64_t first, std::int64_t end) {
  const auto read = [](const T* x) {
    V v;
    std::memcpy(&v, x, sizeof v);
    return v;
  };
  constexpr bool several = tile_depth<T>(W) > kChain<T>;
  constexpr bool lists_a = (lookups & kA) != 0, lists_b = (lookups & kB) != 0;
  const std::int64_t a_row = t.a_row, a_step = t.a_step, b_step = t.b_step;
  constexpr int kSides = lookups == kNeither ? 2 : 1;  // vectors that are found from one pointer
  const T* column[W / kSides];
#pragma GCC unroll 8
  for (int v = 0; v < W / kSides; ++v) {
    column[v] = t.b + t.b_vector[v * kSides] + (lists_b ? 0 : t.b_term[first]);
    hide(column[v]);
  }
  // Rows that one pointer does not reach have others.
  constexpr int kPointers = (R - 1) / kPointerRows + 1;
  const T* row[kPointers];
  if constexpr (!lists_a)
#pragma GCC unroll 4
    for (int i = 0; i < kPointers; ++i) {
      row[i] = t.a + i * kPointerRows * a_row + t.a_term[first];
      hide(row[i]);
    }
  alignas(kVectorWidth) T total[R * W * kLanes<T>];
  const Vectors<T> totals{total, W * kLanes<T>, kSide<T>};
  Vectors<const T> start = t.from;
  std::int64_t k = first;
  do {
    const bool ends = !several || end - k <= kChain<T>;
    const std::int64_t stop = ends ? end : k + kChain<T>;
    V sum[R][W];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < W; ++v) sum[r][v] = V{};
    for (; k < stop; ++k) {
      const T* a = lists_a ? t.a + t.a_term[k] : nullptr;
      const std::int64_t term = lists_b ? t.b_term[k] : 0;
      V right[W];
#pragma GCC unroll 8
      for (int v = 0; v < W; ++v) {
        right[v] = read(column[v / kSides] + v % kSides * kLanes<T> + term);
        if (!lists_b && v % kSides + 1 == kSides) column[v / kSides] += b_step;
      }
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        if (lists_a && r > 0 && r % kPointerRows == 0) {
          a += kPointerRows * a_row;
          hide(a);
        }
        const V left = (lists_a ? a : row[r / kPointerRows])[r % kPointerRows * a_row] - V{};
#pragma GCC unroll 8
        for (int v = 0; v < W; ++v) sum[r][v] = multiply_add(left, right[v], sum[r][v]);
      }
      if constexpr (!lists_a)
#pragma GCC unroll 4
        for (int i = 0; i < kPointers; ++i) row[i] += a_step;
    }
    const Vectors<T>& results = ends ? t.to : totals;
    const std::int64_t from_row = start.row, to_row = results.row;
    const T* from[W];
    T* to[W];
#pragma GCC unroll 8
    for (int v = 0; v < W; ++v) {
      from[v] = start.data + start.vector[v];
      to[v] = results.data + results.vector[v];
    }
    start = {totals.data, totals.row, totals.vector};
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < W; ++v) {
        const V y = read(from[v]) + sum[r][v];
        std::memcpy(to[v], &y, sizeof y);
        from[v] += from_row;
        to[v] += to_row;
      }
  } while (several && k < end);
}

template <class T>
using TileFunction = void (*)(const RegisterTile<T>&, std::int64_t, std::int64_t);

/// Lanes of a half vector, for which processors that split vectors of 64 bytes need half the time; 0 where it saves
/// nothing.
template <class T>
inline constexpr int kHalfLanes = kVectorWidth == 64 && sizeof(T) == sizeof(float) ? kLanes<T> / 2 : 0;

/// The tiles of one height for 1, 2, 4 and 8 vectors, and, of some heights, for half a vector (0).
template <class T>
struct TileWidths {
  TileFunction<T> of[4], half = nullptr;
  TileFunction<T> main[3] = {};  ///< for `kMainWidth` vectors and other `Lookups` than both, of some heights

  TileFunction<T> tile(int width, int lookups) const {
    if (width == kMainWidth && lookups < kBoth && main[lookups] != nullptr) return main[lookups];
    return width == 0 ? half : of[__builtin_ctz(static_cast<unsigned>(width))];
  }
};
template <class T, int R>
constexpr TileWidths<T> tile_widths() {
  TileWidths<T> tiles{{multiply_tile<T, R, 1>, multiply_tile<T, R, 2>}};
  if constexpr (widest(R) >= 4) tiles.of[2] = multiply_tile<T, R, 4>;
  if constexpr (widest(R) >= 8) tiles.of[3] = multiply_tile<T, R, 8>;
  if constexpr (kHalfLanes<T> != 0 && (R == 12 || R == 8 || R == 4 || R <= 2))
    tiles.half = multiply_tile<T, R, 1, kBoth, typename Several<T, kHalfLanes<T>>::type>;
  // The look-ups cost a twentieth.
  if constexpr (kVectorWidth >= 32 && (R == 5 || R == 6)) {
    constexpr bool single = sizeof(T) == sizeof(float);
    if constexpr (single || kVectorWidth == 32) tiles.main[kNeither] = multiply_tile<T, R, kMainWidth, kNeither>;
    if constexpr (single && kVectorWidth == 32) {
      tiles.main[kA] = multiply_tile<T, R, kMainWidth, kA>;
      tiles.main[kB] = multiply_tile<T, R, kMainWidth, kB>;
    }
  }
  return tiles;
}
template <class T, int... I>
const TileWidths<T>* all_tiles(std::integer_sequence<int, I...>) {
  static constexpr TileWidths<T> kTiles[] = {tile_widths<T, I + 1>()...};
  return kTiles;
}

}  // namespace taper::kernels
