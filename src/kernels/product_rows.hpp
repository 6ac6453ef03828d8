#pragma once

#include "kernels/product_tiles.hpp"

/// Products whose rows of results are a few whole vectors each; for conv_turned.cpp alone.
namespace taper::kernels {

namespace {  // out of line, but no kernels to be chosen between

/// Several products with one right operand, whose terms lie anywhere: a's element (i, k) of line l is at
/// `a[l * a_line + i * a_row + a_term[k]]`, row k of b at `b + b_term[k]`, both as in `ListedOperands`.
template <class T>
struct RowOperands {
  const T* a;
  std::int64_t a_row;
  const std::int64_t* a_term;
  std::int64_t a_step;
  const T* b;
  const std::int64_t* b_term;
  std::int64_t b_step;
  std::int64_t lines = 1, a_line = 0;
  const Ahead* ahead = nullptr;  ///< two of them, unless null
};

/// c[l, i, :] = sum over k of a[l, i, k] b[k, :], or += with `add`, for rows of so many whole vectors, which lie one
/// after another, and at most `kChain` terms.
template <class T>
[[gnu::noinline]] void multiply_rows(std::int64_t rows, std::int64_t vectors, std::int64_t depth,
                                     const RowOperands<T>& x, T* c, bool add) {
  const TileWidths<T>* const all = all_tiles<T>();
  const int lookups = lookups_of(x.a_row, x.a_step, x.b_step);
  const std::int64_t row = vectors * kLanes<T>;
  int width = kMainWidth;
  Fetching ahead(x.ahead, x.ahead != nullptr ? x.lines * ceil_div(rows, tallest<T>(width)) : 1);
  for (std::int64_t v = 0; v < vectors; v += width) {
    if (tallest<T>(3) > 0 && vectors - v == 3)
      width = 3;
    else
      while (width > vectors - v) width /= 2;
    const int all_rows = static_cast<int>(rows), most = tallest<T>(width, !is_pages_apart<T>(x.a_row)),
              tiles = (all_rows + most - 1) / most, least = all_rows / tiles, taller = all_rows % tiles;
    TileFunction<T> multiply[2];
#pragma GCC unroll 1
    for (int more = 0; more < 2; ++more) multiply[more] = all[std::min(least + more, most) - 1].tile(width, lookups);
    T* to = c + v * kLanes<T>;
    RegisterTile<T> tile{x.a,
                         x.a_row,
                         x.a_term,
                         x.a_step,
                         x.b + v * kLanes<T>,
                         x.b_term,
                         x.b_step,
                         kSide<T>,
                         kZeroRows<T>,
                         {to, row, kSide<T>},
                         false,
                         nullptr,
                         x.b + v * kLanes<T> + x.b_term[0]};
    if (add) tile.from = {to, row, kSide<T>};
    for (std::int64_t line = 0; line < x.lines; ++line) {
      tile.a = x.a + line * x.a_line;
      for (std::int64_t n = 0, together; n < tiles; n += together) {
        const bool is_taller = n < taller;
        const std::int64_t height = least + is_taller;
        together = tiles_together(is_taller ? taller - n : tiles - n, ahead.is_idle());
        ahead.some(together);
        tile.a_at = tile.a + x.a_term[0];
        multiply[is_taller](tile, 0, depth, together);
        tile.a += together * height * x.a_row;
        tile.to.data += together * height * row;
        if (add) tile.from.data += together * height * row;
      }
    }
  }
}

}  // namespace

}  // namespace taper::kernels
