#include "kernels/product.hpp"

#include <new>
#include <utility>

#include "kernels/product_tiles.hpp"
#include "kernels/turn_square.hpp"

namespace taper::kernels {

namespace {

/// Which of a tile's results count: of `rows` rows of `width` vectors the first `count[v]` elements, without the first
/// `repeated` ones of the last vector. `whole` vectors can be stored as they are, and are `direct`ly if the sums begin
/// with what they are added to.
struct Results {
  std::int64_t rows;
  int width;
  const int* count;
  int repeated;
  bool whole, add, direct;
};

/// c = total, or += with `add`.
template <class T>
[[gnu::noinline]] void add_tile(const T* total, const Vectors<T>& c, const Results& y) {
  if (kVectorWidth == 64 && y.whole && y.width == kMainWidth) return add_rows<T>(total, y.rows, c.data, c);
  for (std::int64_t r = 0; r < y.rows; ++r)
    for (int v = 0; v < y.width; ++v, total += kLanes<T>) {
      T* to = c.data + r * c.row + c.vector[v];
      const int skip = v + 1 == y.width ? y.repeated : 0;
      if (y.whole)
        store(load(to) + load(total), to);
      else
        store_part<T>(load(total + skip), y.count[v] - skip, to + skip, y.add);
    }
}

/// Fetches `rows` rows of so many of x's vectors, the first at `data`.
template <class T>
inline void bring_near(const T* data, const Vectors<T>& x, std::int64_t rows, int width) {
  for (int w = 0; w < width; ++w) {
    const T* to = data + x.vector[w];
    for (std::int64_t r = 0; r < rows; ++r, to += x.row) __builtin_prefetch(to, 0, 2);
  }
}

/// to = from + the sum over more terms than a chain, or of results that are not direct, for some tiles below each
/// other: the sums of chains, one added to the other. What is read ahead is fetched along with each.
template <class T>
[[gnu::noinline]] void sum_chains(TileFunction<T> multiply, std::int64_t depth, RegisterTile<T>& tile,
                                  std::int64_t tiles, Fetching& ahead, const Results& y) {
  // With one vector for loads that skip some.
  alignas(kVectorWidth) T total[(2 * kTileRows<T> * kSomeTiles + 1) * kLanes<T>];
  const std::int64_t row = y.width * kLanes<T>;
  // Field by field: a copy at once would wait for the stores of the single ones.
  const Vectors<T> c{tile.to.data, tile.to.row, tile.to.vector};
  const auto set = [](auto& to, auto* data, std::int64_t distance, const std::int64_t* vector) {
    to.data = data, to.row = distance, to.vector = vector;
  };
  set(tile.to, total, row, kSide<T>);
  std::int64_t k = 0;
  for (; depth - k > kChain<T>; k += kChain<T>) {
    ahead.some(tiles);
    multiply(tile, k, k + kChain<T>, tiles);
    tile.a_at += kChain<T> * tile.a_step, tile.b_at += kChain<T> * tile.b_step;
    set(tile.from, static_cast<const T*>(total), row, kSide<T>);
  }
  ahead.some(tiles);
  if (y.direct) set(tile.to, c.data, c.row, c.vector);
  multiply(tile, k, depth, tiles);
  if (!y.direct) add_tile<T>(total, c, y);
  set(tile.to, c.data, c.row, c.vector);
}

/// Whether the chains of sums run outside the rows of a block where a's rows are no longer than `kDeepBlock`, or few:
/// of the columns of a wide tile the nearest cache holds one chain's terms, a block's only the next one. Many longer
/// rows are better read from end to end.
template <class T>
constexpr bool kChainByChain = kVectorWidth == 64 && sizeof(T) == sizeof(float);

/// Tiles below each other: `taller` of `least` + 1 rows, and what is left of `rows` by `least` rows.
struct Heights {
  std::int64_t rows, taller, least;
};

/// The same as `sum_chains` for all tiles of some columns, one chain of all of them after the other. `multiply` is for
/// `least` rows and for one more; `far` rows of c are brought near.
template <class T>
[[gnu::noinline]] void sum_chain_by_chain(const TileFunction<T> (&multiply)[2], const Heights& tiles,
                                          std::int64_t depth, RegisterTile<T>& tile, Fetching& ahead, const Results& y,
                                          bool far) {
  alignas(kVectorWidth) T total[(kBlockRows * kMainWidth + 1) * kLanes<T>];
  const Vectors<T> sums{total, y.width * kLanes<T>, kSide<T>}, c = tile.to;
  const T *const a = tile.a, *const a_at = tile.a_at;
  for (std::int64_t k = 0, end; k < depth; k = end, tile.b_at += kChain<T> * tile.b_step) {
    end = std::min(k + kChain<T>, depth);
    const bool last = end == depth;
    if (k > 0) tile.from = {sums.data, sums.row, sums.vector};
    tile.to = last && y.direct ? c : sums;
    tile.a = a, tile.a_at = a_at + k * tile.a_step;
    for (std::int64_t i = 0, n = 0, height; i < tiles.rows; i += height, ++n) {
      height = tiles.least + (n < tiles.taller);
      if (far && last) bring_near(c.data + i * c.row, c, height, y.width);
      ahead.some();
      multiply[n < tiles.taller](tile, k, end, 1);
      tile.a += height * tile.a_row, tile.a_at += height * tile.a_row;
      tile.from.data += height * tile.from.row, tile.to.data += height * tile.to.row;
    }
  }
  if (!y.direct) add_tile<T>(total, c, y);
}

/// Vectors are loaded and stored in part at the cost of whole ones.
constexpr bool kMasks = kVectorWidth == 64;

/// to[k, j] = x[j, k] for j < columns, k < depth of a square of one vector a side; with zeros for the other j < stored.
/// All columns count if `Columns`, and all of the depth and what is stored if `Depth`.
template <class T, bool Columns, bool Depth>
void pack_square(const T* x, std::int64_t ldx, int columns, int depth, T* to, std::int64_t row, int stored) {
  Vector<T> v[kLanes<T>];
  if (Depth) {
#pragma GCC unroll 16
    for (int j = 0; j < kLanes<T>; ++j) v[j] = Columns || j < columns ? load(x + j * ldx) : Vector<T>{};
    turn_square<T>(v);
#pragma GCC unroll 16
    for (int k = 0; k < kLanes<T>; ++k) store(v[k], to + k * row);
  } else if (kMasks) {
    // Of the last column nothing is loaded for those that there are not.
#pragma GCC unroll 16
    for (int j = 0; j < kLanes<T>; ++j) v[j] = load_first(x + std::min(j, columns - 1) * ldx, j < columns ? depth : 0);
    turn_square<T>(v);
#pragma GCC unroll 16
    for (int k = 0; k < kLanes<T>; ++k) {
      if (k >= depth) return;
      store_part<T>(v[k], stored, to + k * row, false);
    }
  } else {
    for (int j = 0; j < kLanes<T>; ++j) v[j] = j < columns ? load_first(x + j * ldx, depth) : Vector<T>{};
    turn_square<T>(v);
    for (int k = 0; k < depth; ++k) store_part<T>(v[k], stored, to + k * row, false);
  }
}

template <class T>
struct OwnedScratch : Scratch<T> {
  void* memory;

  OwnedScratch() {
    constexpr std::int64_t block = kResultSize;
    constexpr std::size_t bytes =
        static_cast<std::size_t>(block) * sizeof(double) +
        static_cast<std::size_t>(kLeftSize<T> + kRightSize<T> + kBlocksTogether * kPanelsSize + 2 * block) * sizeof(T);
    memory = ::operator new (bytes, std::align_val_t{64});
    this->sums = static_cast<double*>(memory);
    this->result = reinterpret_cast<T*>(this->sums + block);
    this->part = this->result + block;
    this->left = this->part + block;
    this->right = this->left + kLeftSize<T>;
    this->panels = this->right + kRightSize<T>;
  }
  OwnedScratch(const OwnedScratch&) = delete;
  ~OwnedScratch() { ::operator delete (memory, std::align_val_t{64}); }
};

}  // namespace

template <class T>
void multiply_block(std::int64_t rows, std::int64_t columns, std::int64_t depth, const ListedOperands<T>& x, T* c,
                    std::int64_t ldc, bool add) {
  alignas(kVectorWidth) T bias[kBlockRows * kLanes<T>];
  Vectors<const T> from = kZeroRows<T>;
  if (x.bias != nullptr) {
    for (std::int64_t r = 0; r < rows; ++r) store(x.bias[r] - Vector<T>{}, bias + r * kLanes<T>);
    from = {bias, kLanes<T>, kSame};
  }
  // Of each width tiles as tall as each other. The rows run inside the columns, so that the tile's columns of b stay in
  // the nearest caches.
  const TileWidths<T>* const all = all_tiles<T>();
  const bool apart = !is_pages_apart<T>(ldc) && !is_pages_apart<T>(x.a_row);
  const auto highest = [apart](int w) { return tallest<T>(w, apart); };
  const std::int64_t vectors = ceil_div(columns, kLanes<T>), last = vectors - 1;
  // Few elements of the last of an odd number of vectors are those of a half: its first, or what follows the repeated.
  const bool halved = kHalfLanes<T> != 0 && vectors % 2 != 0 &&
                      (x.repeated > 0 ? kLanes<T> - x.repeated : x.c_count[last]) <= kHalfLanes<T>;
  const int skipped = halved && x.repeated > 0 ? kHalfLanes<T> : 0;
  const std::int64_t b_half = x.b_vector[last] + skipped, c_half = x.c_vector[last] + skipped;
  const int half_count = x.c_count[last] - skipped;
  // Rows of c that are far from each other are brought near before the last term. After few terms that takes longer
  // than to leave what is not read in the buffers of the processor's stores.
  const bool far = ldc > kBlockColumns && depth >= (add ? 64 : 65);
  const int found = lookups_of(x.a_row, x.a_step, x.b_step);
  const int most = std::max(kMainWidth, widest<T>(rows));
  const std::int64_t chains = ceil_div(depth, kChain<T>);
  std::int64_t calls = 1;
  if (x.ahead != nullptr) calls = ceil_div(vectors, most) * ceil_div(rows, highest(most)) * chains;
  Fetching ahead(x.ahead, calls);
  int width = most;
  for (std::int64_t v = 0; v < vectors; v += width) {
    const bool half = halved && v == last;
    const std::int64_t left = half ? 1 : vectors - halved - v;
    // Of five vectors three and two, as a single one loads as much as two.
    if (tallest<T>(3) > 0 && (left == 3 || left == 5))
      width = 3;
    else
      while (width > left) width = width == 3 ? 2 : width / 2;
    // Divisions of short numbers take half the time.
    const int all_rows = static_cast<int>(rows), most_rows = highest(width),
              tiles = (all_rows + most_rows - 1) / most_rows, least = all_rows / tiles, taller = all_rows % tiles;
    const std::int64_t *b_vector = half ? &b_half : x.b_vector + v, *c_vector = half ? &c_half : x.c_vector + v;
    const int lookups = are_beside<T>(b_vector, width) ? found : int{kBoth};
    const int* const count = half ? &half_count : x.c_count + v;
    if (x.column_bias != nullptr) from = {x.column_bias, 0, c_vector};
    const int repeated = v + width == vectors ? x.repeated - skipped : 0, full = half ? kHalfLanes<T> : kLanes<T>;
    bool whole = !add || (repeated == 0 && !half);
    for (int i = 0; i < width; ++i) whole = whole && count[i] == full;
    const bool direct = whole && (!add || x.continues || depth <= kChain<T>);
    Results results{0, width, count, repeated, whole, add, direct};
    const bool at_once = direct && depth <= kChain<T>;
    const Vectors<const T> start = add && direct ? Vectors<const T>{c, ldc, c_vector} : from;
    RegisterTile<T> tile{x.a,      x.a_row, x.a_term,           x.a_step, x.b,     x.b_term, x.b_step,
                         b_vector, start,   {c, ldc, c_vector}, false,    nullptr, nullptr};
    if constexpr (kChainByChain<T>)
      if (depth > kChain<T> && tiles > 1 && !half && (x.a_row <= kDeepBlock || rows <= 24)) {
        const TileFunction<T> multiply[] = {all[least - 1].tile(width, lookups),
                                            all[std::min(least, most_rows - 1)].tile(width, lookups)};
        tile.a_at = tile.a + x.a_term[0];
        tile.b_at = x.b + b_vector[0] + x.b_term[0];
        results.rows = rows;
        sum_chain_by_chain<T>(multiply, Heights{rows, taller, least}, depth, tile, ahead, results, far);
        continue;
      }
    // Tiles as tall as each other, those of a row more first.
    for (std::int64_t i = 0, n = 0; i < rows;) {
      std::int64_t height = half ? std::min<std::int64_t>(highest(1), rows - i) : least + (n < taller);
      while (half && all[height - 1].half == nullptr) --height;
      const TileWidths<T>& tiles_of_height = all[height - 1];
      // Such a tile takes all chains at once, of which it may also add the sum.
      const bool joins = kJoinsChains<T> && tiles_of_height.chains != nullptr && whole && depth > kChain<T> &&
                         lookups == kNeither && width == kMainWidth && x.b_step == kPanel<T>;
      const TileFunction<T> multiply = joins ? tiles_of_height.chains : tiles_of_height.tile(half ? 0 : width, lookups);
      const std::int64_t together =
          half ? 1 : tiles_together(n < taller ? taller - n : tiles - n, (at_once || joins) && !far && ahead.is_idle());
      tile.a = x.a + i * x.a_row;
      tile.to.data = c + i * ldc;
      tile.from = start;
      tile.from.data += i * start.row;
      tile.a_at = tile.a + x.a_term[0];
      tile.b_at = x.b + b_vector[0] + x.b_term[0];
      results.rows = together * height;
      if (far) bring_near(tile.to.data, tile.to, results.rows, width);
      if (at_once || joins) {
        tile.adds = joins && !direct;
        ahead.some(joins ? together * chains : together);
        multiply(tile, 0, depth, together);
      } else {
        sum_chains<T>(multiply, depth, tile, together, ahead, results);
      }
      i += together * height, n += together;
    }
  }
}

/// A block that is tiles of 5 or 6 rows and whole panels alone, of one chain: with nothing else to look at, small
/// products take a tenth less. Returns whether it is one, and then has computed it.
template <class T>
bool multiply_even(std::int64_t rows, std::int64_t columns, std::int64_t depth, const Operands<T>& x, T* c,
                   std::int64_t ldc, bool add) {
  constexpr std::int64_t height = kTileRows<T>, width = kMainWidth * kLanes<T>;
  const std::int64_t tiles = ceil_div(rows, height), taller = rows - tiles * (height - 1);
  if (taller < 0 || columns % width != 0 || depth > kChain<T> || x.a.column != 1 || x.row_bias != nullptr) return false;
  // After so many terms of float64 far rows of c are worth bringing near, as is done below.
  if (ldc > kBlockColumns && depth > kChain<float>) return false;
  const TileWidths<T>* const all = all_tiles<T>();
  const Vectors<const T> from = add                 ? Vectors<const T>{c, ldc, kSide<T>}
                                : x.bias != nullptr ? Vectors<const T>{x.bias, 0, kSide<T>}
                                                    : kZeroRows<T>;
  RegisterTile<T> tile{nullptr, x.a.row,  nullptr, 1, nullptr, nullptr, x.b.row, nullptr, from, {c, ldc, kSide<T>},
                       false,   x.a.data, x.b.data};
  for (std::int64_t j = 0; j < columns; j += width) {
    if (taller > 0) all[height - 1].main[kNeither](tile, 0, depth, taller);
    if (taller < tiles) {
      const std::int64_t above = taller * height;
      RegisterTile<T> below = tile;
      below.a_at += above * x.a.row, below.from.data += above * from.row, below.to.data += above * ldc;
      all[height - 2].main[kNeither](below, 0, depth, tiles - taller);
    }
    tile.b_at += x.b.panel, tile.to.data += width;
    if (from.vector != kSame) tile.from.data += width;
  }
  return true;
}

template <class T>
void multiply_block(std::int64_t rows, std::int64_t columns, std::int64_t depth, const Operands<T>& x, T* c,
                    std::int64_t ldc, bool add) {
  if constexpr (kRuns)
    if (multiply_even<T>(rows, columns, depth, x, c, ldc, add)) return;
  constexpr std::int64_t most = kBlockColumns / kLanes<T>;
  std::int64_t a_term[kDeepBlock], b_term[kDeepBlock], b_vector[most], c_vector[most];
  int count[most];
  for (std::int64_t k = 0, a = 0, b = 0; k < depth; ++k, a += x.a.column, b += x.b.row) a_term[k] = a, b_term[k] = b;
  std::int64_t v = 0;
  for (; v * kLanes<T> < columns; ++v) {
    b_vector[v] = v / 2 * x.b.panel + v % 2 * kLanes<T>;
    c_vector[v] = v * kLanes<T>;
    count[v] = static_cast<int>(std::min<std::int64_t>(columns - c_vector[v], kLanes<T>));
  }
  int repeated = 0;
  if ((x.b.exact || v % 2 == 0) && count[v - 1] < kLanes<T>) {
    // The last vector ends where the row does, of which it finds what is before it there, or in the same panel.
    repeated = kLanes<T> - count[v - 1];
    b_vector[v - 1] -= repeated;
    c_vector[v - 1] -= repeated;
    count[v - 1] = kLanes<T>;
  }
  multiply_block<T>(rows, columns, depth,
                    ListedOperands<T>{x.a.data, x.a.row, a_term, x.a.column, x.b.data, b_term, x.b.row, b_vector,
                                      c_vector, count, x.row_bias, x.bias, repeated, x.continues},
                    c, ldc, add);
}

#if defined(__AVX512F__)
template <class T>
void multiply_along(std::int64_t rows, std::int64_t columns, std::int64_t depth, const Operands<T>& x, T* c,
                    std::int64_t ldc, bool add) {
  constexpr std::int64_t most = tallest<T>(kMainWidth), width = kAlong<T>;
  std::int64_t a_term[kChain<T>], b_term[kChain<T>], b_vector[kMainWidth];
  for (std::int64_t k = 0, a = 0, b = 0; k < depth; ++k, a += x.a.column, b += x.b.row) a_term[k] = a, b_term[k] = b;
  for (std::int64_t v = 0; v < kMainWidth; ++v) b_vector[v] = v / 2 * x.b.panel + v % 2 * kLanes<T>;
  const Vectors<const T> from = add                 ? Vectors<const T>{c, ldc, kSide<T>}
                                : x.bias != nullptr ? Vectors<const T>{x.bias, 0, kSide<T>}
                                                    : kZeroRows<T>;
  const std::int64_t panels = width / kPanel<T> * x.b.panel, further = from.vector == kSame ? 0 : width;
  const std::int64_t tiles = ceil_div(rows, most), least = rows / tiles, taller = rows % tiles;
  for (std::int64_t i = 0, n = 0, height; n < tiles; i += height, ++n) {
    height = least + (n < taller);
    const TileFunction<T> multiply =
        all_tiles<T>()[height - 1].tile(kMainWidth, lookups_of(x.a.row, x.a.column, x.b.row));
    const T* const a = x.a.data + i * x.a.row;
    RegisterTile<T> tile{a,      x.a.row, a_term,   x.a.column, x.b.data,
                         b_term, x.b.row, b_vector, from,       {c + i * ldc, ldc, kSide<T>},
                         false,  a,       x.b.data};
    tile.from.data += i * from.row;
    for (std::int64_t j = 0; j < columns; j += width) {
      multiply(tile, 0, depth, 1);
      tile.b += panels, tile.b_at += panels, tile.to.data += width, tile.from.data += further;
    }
  }
}
template void multiply_along(std::int64_t, std::int64_t, std::int64_t, const Operands<float>&, float*, std::int64_t,
                             bool);
template void multiply_along(std::int64_t, std::int64_t, std::int64_t, const Operands<double>&, double*, std::int64_t,
                             bool);
#endif

template <class T>
void sum_in_steps(std::int64_t rows, std::int64_t columns, std::int64_t depth, std::int64_t step,
                  const SumTerms<T>& terms, T* c, std::int64_t ldc, bool add, std::int64_t row) {
  if (sizeof(T) == sizeof(double) || depth <= kLongSum) {
    for (std::int64_t k = 0; k < depth; k += step)
      terms.sum(terms.body, k, std::min(step, depth - k), c, ldc, add || k > 0);
    return;
  }
  const Scratch<T>& s = scratch<T>();
  for (std::int64_t k = 0; k < depth; k += step) {
    const std::int64_t n = std::min(step, depth - k);
    terms.sum(terms.body, k, n, s.part, row, k % kLongSum != 0);
    if (k + n < depth && (k + n) % kLongSum != 0) continue;
    const bool first = k < kLongSum;
    // sums[i, j] = (first ? 0 : sums[i, j]) + part[i, j]
    for (std::int64_t i = 0; i < rows; ++i) {
      double* sums = s.sums + i * row;
      const T* part = s.part + i * row;
      for (std::int64_t j = 0; j < columns; ++j) sums[j] = (first ? 0 : sums[j]) + static_cast<double>(part[j]);
    }
  }
  // c[i, j] = (add ? c[i, j] : 0) + sums[i, j]
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const double sum = s.sums[i * row + j];
      c[i * ldc + j] = static_cast<T>(add ? static_cast<double>(c[i * ldc + j]) + sum : sum);
    }
}

template <class T>
const Scratch<T>& scratch() noexcept {
  thread_local const OwnedScratch<T> own;
  return own;
}

template <class T>
void pack_transposed(const T* x, std::int64_t ldx, std::int64_t columns, std::int64_t depth, T* packed,
                     std::int64_t row, bool fill) {
  constexpr std::int64_t side = kLanes<T>;
  const std::int64_t height = std::min(side, depth);
  for (std::int64_t j = 0; j < columns; j += side) {
    const std::int64_t width = std::min(side, columns - j), stored = fill ? std::min(side, row - j) : width;
    const auto pack = height < side || stored < side ? pack_square<T, false, false>
                      : width == side                ? pack_square<T, true, true>
                                                     : pack_square<T, false, !kMasks>;
    // The last of several squares ends where the columns do.
    for (std::int64_t k = 0; k < depth; k += side) {
      const std::int64_t first = std::min(k, depth - height);
      pack(x + j * ldx + first, ldx, static_cast<int>(width), static_cast<int>(height), packed + first * row + j, row,
           static_cast<int>(stored));
    }
  }
}

template <class T>
void pack_rows(const T* x, std::int64_t ldx, std::int64_t columns, std::int64_t depth, T* packed) {
  const std::int64_t last = (columns - 1) / kLanes<T> * kLanes<T>, rest = columns - last, panel = depth * kPanel<T>;
  for (std::int64_t k = 0; k < depth; ++k, x += ldx, packed += kPanel<T>) {
    T* to = packed;
    std::int64_t next = kLanes<T>;  // to the second vector of a panel, then to the first of the next one
    for (std::int64_t j = 0; j < last; j += kLanes<T>, to += next, next = panel - next) store(load(x + j), to);
    store(rest == kLanes<T> ? load(x + last) : load_first(x + last, rest), to);  // parts may take longer
  }
}

TAPER_FOR_SIZE Grid cut(std::int64_t rows, std::int64_t columns, std::int64_t depth, std::int64_t batch,
                        std::int64_t column_multiple) {
  if (is_one_unit(rows, columns, depth)) return {rows, columns, 1, 1, parallel_work(rows * columns, depth)};
  constexpr std::int64_t unit_products = 1 << 20;
  Grid g{equal_step(rows, kBlockRows, kRowMultiple), equal_step(columns, kBlockColumns, column_multiple), 0, 0, 0};
  // Enough units for several threads, but none below a quarter of a million products: each packs its own operands.
  const double products = static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(depth);
  const double wanted = std::min(16.0, 2 * products * static_cast<double>(batch) / unit_products);
  const auto enough = [&] {
    return static_cast<double>(ceil_div(rows, g.row_step)) * static_cast<double>(ceil_div(columns, g.column_step)) *
               static_cast<double>(batch) >=
           wanted;
  };
  if (!enough()) g.column_step = equal_step(columns, 64, column_multiple);
  if (!enough()) g.row_step = equal_step(rows, 72, kRowMultiple);
  if (!enough()) g.column_step = equal_step(columns, 32, column_multiple);
  g.row_units = ceil_div(rows, g.row_step);
  g.column_units = ceil_div(columns, g.column_step);
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
template void sum_in_steps(std::int64_t, std::int64_t, std::int64_t, std::int64_t, const SumTerms<float>&, float*,
                           std::int64_t, bool, std::int64_t);
template void sum_in_steps(std::int64_t, std::int64_t, std::int64_t, std::int64_t, const SumTerms<double>&, double*,
                           std::int64_t, bool, std::int64_t);
template const Scratch<float>& scratch<float>() noexcept;
template const Scratch<double>& scratch<double>() noexcept;
template void pack_rows(const float*, std::int64_t, std::int64_t, std::int64_t, float*);
template void pack_rows(const double*, std::int64_t, std::int64_t, std::int64_t, double*);
template void pack_transposed(const float*, std::int64_t, std::int64_t, std::int64_t, float*, std::int64_t, bool);
template void pack_transposed(const double*, std::int64_t, std::int64_t, std::int64_t, double*, std::int64_t, bool);

}  // namespace taper::kernels
