"""The mistakes that mutants.py plants: the ones that other frameworks really made, and their kin."""

from typing import NamedTuple


class Mutant(NamedTuple):
    name: str
    file: str
    fragment: str
    replacement: str
    tests: str = ""


def geometry():
    file = "src/base/window.cpp"
    yield Mutant("floor for ceil", file, "if (travel % w.stride != 0) ++steps;", "", "*average pools are valid*")
    yield Mutant("last window in the right padding kept", file, "return steps >= starts ? steps : steps + 1;",
                 "return starts < 0 ? starts : steps + 1;", "*average pools are valid*")
    yield Mutant("truncation for floor in sizes", file, "checked::floor_div(travel, w.stride)", "(travel / w.stride)",
                 "*output sizes*")
    yield Mutant("padding limit of half a kernel rounded up", file, "*dilated : w.kernel) / 2;",
                 "*dilated + 1 : w.kernel + 1) / 2;", "*window options are refused*")
    yield Mutant("odd zero of 'same' on the left", file, "w.padding_left = total / 2;", "w.padding_left = total - total / 2;",
                 "*same padding*")
    yield Mutant("stride 0 not checked", file, "return w.stride < 1 && w.stride != w.kernel;", "return w.stride < 0;",
                 "*window options are refused*")
    yield Mutant("overflow of the dilated kernel not checked", file, "const auto gaps = checked::mul(w.dilation, w.kernel - 1);",
                 "const std::optional<std::int64_t> gaps = std::int64_t(std::uint64_t(w.dilation) * std::uint64_t(w.kernel - 1));",
                 "*edge of 64 bits*")


def average_pools():
    module, axis = "modules/pool.cpp", "src/kernels/pool_axis.hpp"
    fixed = "src/kernels/avg_pool.cpp"
    shared = "modules/pool_geometry.cpp"
    yield Mutant("the last copy of a row of gradients left out", "src/kernels/avg_pool_loops.hpp",
                 "for (std::int64_t c = rows[l].copies; c > 0; --c, y += n) {",
                 "for (std::int64_t c = rows[l].copies; c > 1; --c, y += n) {", "*pool*")
    yield Mutant("stride of the wrong dimension", shared, "p.stride[at] = window.stride;",
                 "p.stride[at] = windows[0].stride;", "every layer gives PyTorch's*")
    yield Mutant("padding of the wrong side", shared, "p.padding_right[at] = window.padding_right;",
                 "p.padding_right[at] = 0;", "every layer gives PyTorch's*")
    yield Mutant("count_include_pad dropped", module, "params.count_include_pad = options.count_include_pad;", "",
                 "every layer gives PyTorch's*")
    yield Mutant("divisor_override dropped", module, "params.divisor_override = divisor_of(options).value_or(0);", "",
                 "every layer gives PyTorch's*")
    yield Mutant("divisor_override ignored by the kernel", fixed, "if (divisor_override != 0)", "if (false)",
                 "*average pools*")
    yield Mutant("even windows that are not", fixed, "a.is_adaptive = in % out != 0;", "a.is_adaptive = out == 0;",
                 "adaptive average pools*")
    yield Mutant("uniform divisor of the first window", axis,
                 "return first != last || (first != window.kernel && out > 2) ? 0 : first;",
                 "return last < 0 ? 0 : first;", "*average pools*")
    yield Mutant("padding beyond half a window", "src/base/window.cpp", "? dilated : w.kernel) / 2;", "? dilated : w.kernel);")
    yield Mutant("divisor of the full kernel", axis, "return counted_taps(window, in, o, count_include_pad);",
                 "return window.kernel;", "*average pools*")
    yield Mutant("gradient of an empty adaptive output not cleared", fixed, "if (!add) std::fill(dx, dx + params.planes",
                 "if (false) std::fill(dx, dx + params.planes", "an empty adaptive output*")
    tiles = "src/kernels/avg_pool_tiles.hpp"
    yield Mutant("the last windows side by side left out", tiles, "sum(&line, 1, rest, 0, 0);", "", "*average*")
    yield Mutant("gradients of windows side by side of the first vector", tiles, "some_from<Ints>(v * kWidth, k * kWidth)",
                 "some_from<Ints>(0, k * kWidth)", "*average*")
    tiny = "src/kernels/avg_pool_tiny.hpp"
    yield Mutant("tiny planes by the first divisor", tiny, "static_cast<float>(sum / w.divisor);",
                 "static_cast<float>(sum / windows_[0].divisor);", "random 2-d and 3-d average pools*")
    yield Mutant("the last window of tiny planes alone", tiny, "to[j] += g;", "to[j] = g;", "random 2-d and 3-d average pools*")
    yield Mutant("few rows of gradients side by side", "src/kernels/avg_pool_small.hpp",
                 "const std::int64_t step = in_order ? kFew", "const std::int64_t step = in_order ? kFew + 1",
                 "gradients of small windows too many*")
    yield Mutant("the rest of a divisor left out", "src/kernels/pool_lanes.hpp", "divisor, 1.0) * inverse);",
                 "divisor, 1.0) * 0);", "*average*")
    loops, strided = "src/kernels/avg_pool_loops.hpp", "windows of any terms*"
    yield Mutant("last window of a row left out", loops, "store_some<A>(factor.times(sum), n - o, line.to + o);",
                 "store_some<A>(factor.times(sum), n - o - 1, line.to + o);", "*average pools*")
    yield Mutant("last terms of three left over in their lane", loops, "s3 = even_at(end + pair), s2 = odd_at(end)",
                 "s3 = even_at(end + pair), s2 = even_at(end)", strided)
    yield Mutant("terms behind the second four left out", loops, "while (--fours > 0);", "while (--fours > 1);",
                 strided)
    yield Mutant("terms an odd step apart taken from even elements", loops, "step / 2 + (step % 2 == 0 ? 0 : width)",
                 "step / 2 + 0 * width", strided)
    yield Mutant("windows behind the first part from its elements", loops, "{line.from + 2 * o, line.to + o,",
                 "{line.from, line.to + o,", strided)
    yield Mutant("dilated windows without the zeros beside the source", "src/kernels/avg_pool_plan.hpp",
                 "(w.step == 1 || !has_room(w))", "true", "zeros written out*")
    yield Mutant("windows behind the first part by its factors", loops, "line.by + by_step * o * Factors<A>::kElements",
                 "line.by + 0 * by_step", strided)
    yield Mutant("an infinity left in the sums behind it", "src/kernels/avg_pool_long.hpp",
                 "return before[0] - before[0] == 0;", "return true;", "an infinity*")
    yield Mutant("gradient of average pools overwritten", "src/kernels/avg_pool_pass.hpp",
                 "if (!add_ && !has_copies_) return store_lines", "if (true) return store_lines", "*average pools*")
    yield Mutant("windows of three that read the wrong neighbour", "src/kernels/avg_pool_small.hpp",
                 "sum += moved<kLanes<T> - 1>(before, odd, All());", "sum += moved<kLanes<T> - 1>(odd, odd, All());",
                 "*average pools*")
    yield Mutant("gradients times the factors of the row before", "src/kernels/avg_pool_small.hpp",
                 "*const by = s.factors(window);", "*const by = s.factors(window - 1);", "*average pools*")
    yield Mutant("the row below the last one filled", "src/kernels/avg_pool_small.hpp",
                 "row < std::min(l + 2, last); ++row", "row < l + 2; ++row", "*average pools*")
    yield Mutant("whole vectors up to the first half", "src/kernels/avg_pool_small.hpp",
                 "if (std::min(width, to_width) - from >= kTwo)", "if (std::min(width, to_width) - from >= kLanes<T>)",
                 "*average pools*")
    yield Mutant("averages of narrow rows stored behind the last one", "src/kernels/avg_pool_small.hpp",
                 "return all > 2 * rest ? all - rest : 0;", "return all > 2 * rest ? all : 0;", "planes cut into windows*")
    yield Mutant("gradients of narrow rows stored behind the last one", "src/kernels/avg_pool_small.hpp",
                 "to_first + 2 * (all - rest) : to_first", "to_first + 2 * all : to_first", "many planes under small*")
    yield Mutant("gradients behind a narrow row taken for its own", "src/kernels/avg_pool_small.hpp",
                 "return Vector<T>(__m256i(load<T>(x)) & first_lanes<T>(n));",
                 "return Vector<T>(__m256i(load<T>(x)) & first_lanes<T>(n + kLanes<T>));", "many planes under small*")
    yield Mutant("rows stored on into what other threads fill", "src/kernels/avg_pool_pass.hpp",
                 "rows.more_storable = add_ ? kSlack : y_end", "rows.more_storable = add_ ? kSlack : y_end + 8",
                 "many planes under small*")
    yield Mutant("two lines of a long row of which one is added", "src/kernels/sum_row.hpp",
                 "if (((end - x) & N) != 0) add();", "if (((end - x) & N) != 0) x += N;", "*mean*")
    yield Mutant("sums that overflow float32 not taken again", "src/kernels/sum_run.hpp", "return all - all == 0 ?", "return true ?",
                 "a mean of float32 is right*")
    yield Mutant("the end of a run that no cache holds left out", "src/kernels/sum_run.hpp", "n - kPlaces * part);", "0);",
                 "*no cache holds*")
    yield Mutant("runs in several places taken from one", "src/kernels/loop_hints.hpp", "turn(p, p * part + i, count,",
                 "turn(p, i, count,", "runs read in several*")
    yield Mutant("runs behind those in several places left out", "src/kernels/reduce_driver.hpp",
                 "for (std::int64_t o = first + kPlaces * part; o < last;", "for (std::int64_t o = first + kPlaces * part; o + 1 < last;",
                 "runs read in several*")
    yield Mutant("rows summed together beyond those of sixteen lanes", "src/kernels/sum_row.hpp",
                 "if (n >= kRowLanes && n < kWideRow)", "if (n >= kRowLanes)", "a mean over contiguous*")
    yield Mutant("elements of two uneven windows get one gradient", "src/kernels/avg_pool_uneven.hpp",
                 "two = newest != oldest;", "two = newest < oldest;", "*adaptive*")
    strided = "src/kernels/avg_pool_strided.hpp"
    yield Mutant("fours of columns behind those left over begin one too late", strided, "t > 0 ? 4 * t - 4 :", "t > 0 ? 4 * t - 3 :",
                 "windows of at most sixteen*")
    yield Mutant("two windows' columns left over by fours are one too few", strided, "left > 0 ? 4 - left : 0",
                 "left > 0 ? 5 - left : 0", "windows of at most sixteen*")
    columns = "src/kernels/avg_pool_columns.hpp"
    yield Mutant("columns of the last vector left out", columns, "load_first<float>(at, last)",
                 "load_first<float>(at, last - 1)", "windows of at most sixteen*")
    yield Mutant("the third of four rows for the fourth", columns, "(r < 3 ? r * down : thrice)",
                 "(r < 3 ? r * down : 2 * down)", "windows of at most sixteen*")
    plan = "src/kernels/avg_pool_plan.hpp"
    yield Mutant("rows under windows side by side one apart", plan, "row.from += count * from_width;",
                 "row.from += from_width;", "*pool*")
    yield Mutant("gradients of windows side by side spread over one row", plan,
                 "row.to += copies * to_width;", "row.to += to_width;", "*pool*")
    yield Mutant("columns in front of the last ones left out", columns, "step, kAll, blocks, 0,", "step, kAll, blocks - 1, 0,",
                 "windows of at most sixteen*")
    yield Mutant("lines joined whose windows do not lie side by side", "src/kernels/avg_pool_pass.hpp",
                 "           c_.w.is_beside() && (", "           (", "*pool*")
    yield Mutant("lines of a longer source joined where they lie", "src/kernels/avg_pool_pass.hpp",
                 "(c_.w.is_tiled() || !(one_row_ || reads_rows_))", "(c_.w.is_tiled() || true)", "*pool*")
    yield Mutant("planes listed together without their depth", plan,
                 "from = c.d.from * c.h.from * c.w.from, to", "from = c.h.from * c.w.from, to", "*pool*")
    yield Mutant("as many planes' rows as are listed where fewer are left", "src/kernels/avg_pool_pass.hpp",
                 "units == together_ ? b.row_count : units * c_.h.to", "b.row_count", "*pool*")
    yield Mutant("borders of the first plane's columns alone cleared", "src/kernels/avg_pool_pass.hpp",
                 "std::min(block_rows_, c_.h.to * together_)", "std::min(block_rows_, c_.h.to)", "*pool*")
    yield Mutant("joined rows of fewer windows", "src/kernels/avg_pool.cpp", "    p.w.out *= 2;", "    p.w.out *= 1;", "*average pool*")
    yield Mutant("windows wider than two vectors taken from two", strided, "is_wide = 3 * s + k > 32", "is_wide = 3 * s + k > 33",
                 "windows of at most sixteen*")
    yield Mutant("adaptive windows end at the floor", "src/base/window.hpp",
                 "const std::int64_t last = ceil_scaled(i + 1, length, outputs);",
                 "const std::int64_t last = floor_scaled(i + 1, length, outputs);", "adaptive windows*")
    yield Mutant("adaptive windows without the partial element", "src/kernels/pool_reads.hpp",
                 "return {a.in, a.out, a.in, a.out, 0, a.in + a.out - 1};",
                 "return {a.in, a.out, a.in, a.out, 0, a.in};", "adaptive average pools*")


def convolutions():
    kernel, slab, sweep = "src/kernels/conv.cpp", "src/kernels/conv_slab.hpp", "src/kernels/conv_sweep.hpp"
    copies = "src/kernels/conv_slab.cpp"
    geometry, weight = "src/kernels/conv_geometry.hpp", "src/kernels/conv_weight.cpp"
    axis = "s.axis[d] = {p.in[d], p.stride[d], -p.padding[d], p.kernel[d] > 1 ? p.dilation[d] : 0, 0, 1, 0, 1};"
    yield Mutant("padding with the wrong sign", geometry, axis, axis.replace("-p.padding", "p.padding"),
                 "every layer gives PyTorch's*")
    yield Mutant("dilation of the first dimension for all", geometry, axis, axis.replace("p.dilation[d]", "p.dilation[2]"),
                 "every layer gives PyTorch's*")
    yield Mutant("stride of the input's gradient", kernel, "(p.in[d] - r - 1) / p.stride[d] + 1 : 0;",
                 "(p.in[d] - r - 1) / p.stride[2] + 1 : 0;", "every layer gives PyTorch's*")
    yield Mutant("taps of one turn for all", kernel, "(p.kernel[d] - 1 - first[d]) / period(p, d) + 1;",
                 "(p.kernel[d] - 1) / period(p, d) + 1;", "every layer gives PyTorch's*")
    yield Mutant("positions that no tap reaches not cleared", kernel, "complete = complete && turns[d] == p.stride[d];", "",
                 "every layer gives PyTorch's*")
    yield Mutant("period of the stride alone", kernel, "return p.stride[d] / std::gcd(p.stride[d], p.dilation[d]);",
                 "return p.stride[d];", "convolutions agree*")
    yield Mutant("input of the first group for all, packed", kernel,
                 "pack_taps(s, x + g * s.channels * s.signal_size, k, n, j, columns, own.right, row);",
                 "pack_taps(s, x, k, n, j, columns, own.right, row);", "every layer gives PyTorch's*")
    yield Mutant("input of the first group for all, in slabs", kernel,
                 "return x + r.sample * s.signal_sample() + index / (bands * regions) * s.channels * s.signal_size;",
                 "return x + r.sample * s.signal_sample() + 0 * index;", "convolutions agree*")
    yield Mutant("slab of the first channels for all terms", kernel, "fill_slab(s, slab, area, signal, c,",
                 "fill_slab(s, slab, area, signal, 0,", "convolutions agree*")
    yield Mutant("slab of one sweep for all, though no other shares it", kernel, "if (direct == nullptr && !(filled && all.shared))",
                 "if (direct == nullptr && !filled)", "*convolutions agree*")
    yield Mutant("shared slab that begins where the first sweep's does", kernel,
                 "one.low[d] = std::min(one.low[d], slab[i].low[d]);", "", "*convolutions agree*")
    yield Mutant("results of a shared slab as far apart as in one of their own", kernel,
                 "if (spread) one.result_line = one.extent[2], one.direct", "if (spread) one.direct",
                 "the input gradients of strided*")
    yield Mutant("shared slab of fewer lines without the last of them", kernel,
                 "one.extent[1] -= one.lines - fewer;", "one.extent[1] -= one.lines - fewer + 1;",
                 "the input gradients of strided*")
    yield Mutant("slab counted from the first output", copies, "region.w * slab.step[2] + slab.low[2]};", "slab.low[2]};",
                 "convolutions agree*")
    yield Mutant("remainder by the stride dropped", slab, "phase = phase * axis.stride + (u - e * axis.stride);",
                 "phase = phase * axis.stride;", "convolutions agree*")
    yield Mutant("slab one element short at the end", copies,
                 "std::clamp(floor_div(width->length - 1 - rw, width->stride) + 1 - base[2]",
                 "std::clamp(floor_div(width->length - 1 - rw, width->stride) - base[2]", "convolutions agree*")
    yield Mutant("line of the signal not checked", sweep, "return q >= 0 && q < length ? q : -1;",
                 "return q <= length ? q : -1;", "convolutions agree*")
    yield Mutant("gradient of the weight overwritten", weight,
                 "to[t] = (add ? to[t] : T(0)) + from[t * step.tap];", "to[t] = from[t * step.tap];")
    yield Mutant("last slice of a weight's gradient left out", weight, "slice < slices; ++slice)", "slice + 1 < slices; ++slice)",
                 "a weight gradient that is summed in slices*")
    yield Mutant("packed gradient of the weight overwritten", weight,
                 "to[r] = (add ? to[r] : T(0)) + s.result[r * kBlockColumns + c];",
                 "to[r] = s.result[r * kBlockColumns + c];", "a convolution of a signal that reaches*")
    yield Mutant("gradient of the weight from the last region", weight, "steps.row, terms > 0);",
                 "steps.row, false);", "convolutions agree*")
    yield Mutant("gradient of the weight from the last region, in lines", weight, "own.part, chain > 0);",
                 "own.part, false);", "convolutions agree*")
    yield Mutant("samples of one line side by side", sweep, "s.result_line = result_sample();",
                 "s.result_line = result_size;", "convolutions agree*")
    yield Mutant("gradient of the input overwritten", kernel, "if (stride <= 2 && !add) {", "if (stride <= 2) {",
                 "the gradients of a convolution add*")
    yield Mutant("gradient of the bias of the first sample", weight, "for (std::int64_t n = 0; n < p.batch; ++n)\n        total",
                 "for (std::int64_t n = 0; n < 1; ++n)\n        total", "every layer gives PyTorch's*")
    yield Mutant("weights' gradient of an empty batch not cleared", weight,
                 "if (!add) fill(p.out_channels * terms, T(0), dw);", "")
    yield Mutant("bias added to the wrong channel", kernel, "b != nullptr ? b + channel : nullptr,",
                 "b != nullptr ? b : nullptr,", "every layer gives PyTorch's*")
    yield Mutant("lines merged although the kernel moves", geometry, "const bool copies = p.kernel[2] == 1 && p.padding[2] == 0",
                 "const bool copies = p.kernel[2] == 1")
    yield Mutant("a turned block of weights where the first one goes", weight, "b.o * s.w_row + b.c * s.w_channel, s.w_row, false);",
                 "b.o * s.w_row, s.w_row, false);", "*onv*")
    yield Mutant("a turned block of weights as if its taps were all", weight, "if (!add && step.channel == 1 && b.taps == s.w_channel",
                 "if (!add && step.channel == 1 && b.taps <= s.w_channel", "*onv*")
    turned, test = "src/kernels/conv_turned.cpp", "a convolution with channels along the vectors*"
    yield Mutant("weights of the first band for all", turned, "own_.panels + at * c_.depth * c_.row;", "own_.panels;", test)
    yield Mutant("turned results of all slices in the first", turned, "(begin[0] * s_.result[1] + begin[1]) * s_.result_line",
                 "begin[1] * s_.result_line", test)
    yield Mutant("regions of two groups together", turned, "std::min(last - unit, blocks - some)", "last - unit", test)
    yield Mutant("bias of the first channels, turned", turned, "b != nullptr ? b + channel : nullptr,",
                 "b != nullptr ? b : nullptr,", test)
    yield Mutant("weights of the input's gradient packed as the forward's", turned, "if (is_in_order(c_))", "if (c_.count == 1)",
                 test)
    yield Mutant("turned gradient of the input overwritten", turned,
                 "if (add) v += load_lanes(lanes, to);", "", test)
    yield Mutant("first line for all lines of a product", "src/kernels/product_rows.hpp",
                 "tile.a = x.a + line * x.a_line;", "tile.a = x.a;", test)
    yield Mutant("positions between each other in the order of the sums", turned,
                 "place[l * box.along[0].to] = at++;", "place[l] = at++;", test)
    yield Mutant("weights of the first of several sums for all", turned, "to[s.weight(tap)] = (c.first_term[u] + t) * row",
                 "to[s.weight(tap)] = t * row", test)
    yield Mutant("sums of the first of several sweeps for all", turned, "sums += positions * c_.row;", "", test)
    yield Mutant("positions that no tap reaches hold the last results", turned, "store(Vector<float>{}, sums + j);", "", test)
    yield Mutant("slices with fewer results than the first", turned,
                 "s_.axis[0].to_step * results.extent[1] * results.extent[2];", "results.count();", test)
    yield Mutant("samples of one slice as far apart as slices", turned, "is_flat ? s.signal_sample() :", "", test)
    yield Mutant("slices of the next sample with those of one", turned, "std::min(d->last - 1 - area.d, to - last)",
                 "to - last", test)
    yield Mutant("weights of part of a channel in the place of its first", turned, "(c_.packs_all ? 0 : tap) * c_.row", "0", test)
    inside = "src/kernels/conv_inside.hpp"
    yield Mutant("one position more that finds all taps", inside, "(a.length - 1 - highest) / a.stride + 1",
                 "(a.length - 1 - highest) / a.stride + 2", test)
    yield Mutant("taps of the input's gradient found as the forward's", inside,
                 "a.shift_step > 0 ? -element : beyond", "-element", test)
    yield Mutant("weights of taps that are found lie next to each other", inside, "b[each++] = weight;",
                 "b[each] = each * row, ++each;", test)
    yield Mutant("terms of a step counted from the first of a channel", inside, "of.first_term + before[q];",
                 "of.first_term;", test)
    yield Mutant("terms of a step up to the end of a channel", inside, "before[last] - before[q]}",
                 "before[0 * last] - before[q]}", test)
    yield Mutant("weights of the other channels where the first one's are", inside, "behind = Some{} + c * weight;",
                 "behind = Some{};", test)
    few, test = "src/kernels/conv_few.cpp", "a convolution of few products*"
    yield Mutant("few products' positions that no tap reaches left as they were", few,
                 "y[c * size + i] = (add ? y[c * size + i] : 0) + (b != nullptr ? b[c % channels] : 0);", "", test)
    yield Mutant("few products' taps beyond the signal", few, "if (plane < 0 || line < 0) continue;",
                 "if (plane < 0) continue;", test)
    yield Mutant("few products' results overwritten", few, "y[i * step] = (add ? y[i * step] : 0) + some[i];",
                 "y[i * step] = some[i];", test)
    yield Mutant("few products of the first group", few, "s.groups > 1 ? unit % s.groups : 0", "0", test)
    flat, test = "src/kernels/conv_flat.cpp", "a convolution with one channel a group of small planes*"
    yield Mutant("small planes read beyond the end of the signal", flat,
                 "at + high_ + parts * kLane <= s_.batch * s_.groups * s_.signal_size", "true", test)
    yield Mutant("small planes read in front of the signal", flat, "at + low_ >= 0", "true", test)
    yield Mutant("gradients of small planes read beyond their end", flat,
                 "(s.batch * s.groups - plane) * size < flat.parts * kLane", "false", test)
    yield Mutant("sums of the last small planes stored beyond the end", flat,
                 "(last - plane) * s.result_size >= flat.parts * kLane", "true", test)
    yield Mutant("gradients behind small planes times zero", flat, "inside[i == (flat.parts - 1) * kLane]", "inside[0]",
                 test)
    yield Mutant("weights' gradient of positions one apart", weight, "h * slab.step[1] * line + l * slab.step[2];",
                 "h * line + l;", "convolutions agree*")


def dense():
    yield Mutant("sum of the last chain alone", "src/kernels/product.cpp",
                 "    set(tile.from, static_cast<const T*>(total), row, kSide<T>);\n", "", "a matrix product agrees*")
    yield Mutant("vectors side by side wherever they lie", "src/kernels/product_tiles.hpp",
                 "if (vector[v] != vector[0] + v * kLanes<T>) return false;",
                 "if (vector[v] != vector[0] + v * kLanes<T>) return true;", "a matrix product agrees*")
    yield Mutant("sums begun with what they are added to beside parts of vectors", "src/kernels/gemm.cpp",
                 "may_continue = p.n % kLanes<T> == 0;", "may_continue = p.n > 0;", "a row of products has the same bits*")
    yield Mutant("batches of columns with each other's strides", "src/kernels/gemm.cpp", "std::swap(q.stride_a, q.stride_b);", "",
                 "a batch of matrices*")
    yield Mutant("the last vector of a column times a row behind its end", "src/kernels/gemm.cpp",
                 "const std::int64_t at = std::min(j, n - kLanes<T>);", "const std::int64_t at = j;",
                 "a column times a row*")
    yield Mutant("chains of a row times a matrix not added up", "src/kernels/gemm.cpp",
                 "T* const y = chain == 0 ? c + at : sums;", "T* const y = c + at;", "a row times a matrix*")
    yield Mutant("columns behind whole vectors of a row times a matrix left out", "src/kernels/gemm.cpp",
                 "if (whole == p.n) return;", "return;", "a row times a matrix*")
    yield Mutant("a column times a row stored without gaps", "src/kernels/gemm.cpp", "T* const row = c + i * p.ldc;",
                 "T* const row = c + i * p.n;", "a column times a row*")
    yield Mutant("chains as long as a step", "src/kernels/product.cpp",
                 "for (; depth - k > kChain<T>; k += kChain<T>) {", "for (; depth - k > kDeepBlock; k += kChain<T>) {",
                 "a convolution agrees*")
    yield Mutant("listed terms that fill no turn of a tile all the last", "src/kernels/product_tiles.hpp",
                 "for (; (end - k) % turn != 0; ++k) add_term(k, 0), step_rows(1);",
                 "for (; (end - k) % turn != 0; ++k) add_term(end - 1, 0), step_rows(1);",
                 "a convolution agrees*")
    yield Mutant("sums without a term left as they are", "src/kernels/conv_turned.cpp",
                 "else if (!more)\n          clear(sums, size);", "else if (more)\n          clear(sums, size);",
                 "convolutions agree with their definition on*")
    yield Mutant("the first of four vectors for all, of three rows", "src/kernels/product_tiles.hpp",
                 "const V b_vector = right(v);", "const V b_vector = right(0 * v);", "a convolution agrees*")
    yield Mutant("three vectors by tiles of two", "src/kernels/product_tiles.hpp",
                 "tiles.of[2] = multiply_tiles<T, R, 3>;", "tiles.of[2] = multiply_tiles<T, R, 2>;",
                 "a matrix product agrees*")
    yield Mutant("more tall tiles than there are", "src/kernels/product.cpp",
                 "tiles_together(n < taller ? taller - n : tiles - n,",
                 "tiles_together(n < taller ? taller : tiles - n,", "a matrix product agrees*")
    yield Mutant("all tiles of a call multiply the first one's rows", "src/kernels/product_tiles.hpp",
                 "if constexpr (kRuns) step(a, R * a_row);", "if constexpr (kRuns) step(a, 0);",
                 "a matrix product agrees*")
    beside = "a row of products*"
    yield Mutant("sums of a tile's chains begun anew", "src/kernels/product_tiles.hpp",
                 "x = {total, joined.row, joined.vector};", "x = {from, t.from.row, t.from.vector};", beside)
    yield Mutant("sums of a tile's chains not added to the earlier terms'", "src/kernels/product.cpp",
                 "tile.adds = joins && !direct;", "tile.adds = false;", beside)
    yield Mutant("sums of tiles below each other begun with the first one's", "src/kernels/product_tiles.hpp",
                 "from += R * t.from.row, to += R * t.to.row;", "to += R * t.to.row;", beside)
    yield Mutant("sums of several chains added to one row", "src/kernels/product_tiles.hpp",
                 "for (std::int64_t r = 0; r < rows; ++r, to += y.row)", "for (std::int64_t r = 0; r < rows; ++r)", beside)
    yield Mutant("terms of a long chain that fill no turn left out", "src/kernels/product_tiles.hpp",
                 "for (; left % kTurn != 0; --left) add_term(0), step_rows(1);", "left -= left % kTurn;",
                 "a matrix product agrees*")
    even = "src/kernels/product.cpp"
    yield Mutant("all panels begun with the first one's bias", even,
                 "if (from.vector != kSame) tile.from.data += width;", "", "a product begins with a bias*")
    yield Mutant("lower rows of panels added to the upper ones'", even, "below.from.data += above * from.row, ", "",
                 "a product adds to the result*")
    yield Mutant("panels of a transposed left operand taken for rows", even, "x.a.column != 1 || ", "",
                 "a matrix product agrees*")
    yield Mutant("a bias for each row left out of panels", even, "x.a.column != 1 || x.row_bias != nullptr",
                 "x.a.column != 1", "*linear*")
    yield Mutant("panels of packed rows one vector apart", "src/kernels/product.cpp",
                 "to += next, next = panel - next)", "to += next)", "large products agree*")
    yield Mutant("one term for all of a tile's turn", "src/kernels/product_tiles.hpp",
                 "lists_a ? t.a_term[k] : later,", "lists_a ? t.a_term[k] : 0 * later,", "a matrix product agrees*")
    dots, any_order = "src/kernels/product_dots.cpp", "products in any order*"
    yield Mutant("terms that fill no vector left out of dot products", dots, "  if (depth > 0) add(",
                 "  if (depth > kLanes<T>) add(", any_order)
    yield Mutant("rows of dot products in the place of the first", dots, "rows -= R, a += R * lda, c += R * row)",
                 "rows -= R, a += R * lda, c += row)", any_order)
    yield Mutant("chains that begin where the first did", "src/kernels/product.cpp",
                 "    tile.a_at += kChain<T> * tile.a_step, tile.b_at += kChain<T> * tile.b_step;\n", "",
                 "a matrix product agrees*")
    yield Mutant("bias gradient missing", "src/kernels/linear.cpp",
                 "if (gradients.db != nullptr) linear_backward_bias(p, dy, gradients.db, gradients.add_db);", "",
                 "*linear*")
    yield Mutant("bias gradient overwritten", "src/kernels/linear.cpp",
                 "db[f + i] = static_cast<T>(add ? static_cast<double>(db[f + i]) + sum[i] : sum[i]);",
                 "db[f + i] = static_cast<T>(add ? sum[i] : sum[i]);", "*linear*")
    yield Mutant("batch as rows of the weight's gradient", "src/kernels/linear.cpp", ".lda = p.out_features,\n           .ldb = p.in_features,\n           .ldc = p.in_features,\n           .transpose_a = true,",
                 ".lda = p.in_features,\n           .ldb = p.in_features,\n           .ldc = p.in_features,\n           .transpose_a = true,", "*linear*")
    yield Mutant("reflection repeats the border", "src/kernels/pad.cpp", "return j < 0 ? -j : 2 * (in - 1) - j;",
                 "return j < 0 ? -j - 1 : 2 * (in - 1) - j + 1;", "*pad*")
    yield Mutant("padding's gradient of the border dropped", "src/kernels/pad.cpp", "if (j != kOutside) to[j] += from[i];",
                 "if (j != kOutside && j != 0) to[j] += from[i];", "every layer gives PyTorch's*")
    yield Mutant("softmax without its maximum", "src/kernels/softmax.cpp",
                 "vector_exp(at(from, kNothing<T>) - below);", "vector_exp(at(from, kNothing<T>) - 0 * below);", "softmax*")
    yield Mutant("softmax of short rows without its maximum", "src/kernels/softmax_driver.hpp",
                 "vector_exp(at(x) - top)", "vector_exp(at(x) - 0 * top)", "softmax*")
    yield Mutant("softmax without what rows side by side leave", "src/kernels/softmax.cpp",
                 "all.rest = g.n % sides * g.columns;", "all.rest = 0;", "softmax*")
    yield Mutant("softmax's gradient without its mean", "src/kernels/softmax.cpp", "return at(b) * (at(a) - less);",
                 "return at(b) * (at(a) - 0 * less);", "softmax*")
    yield Mutant("an element before a row's end summed twice", "src/kernels/packs.hpp",
                 "first_lanes<float>(kLanes<float> - count)", "first_lanes<float>(kLanes<float> - count - 1)", "*softmax*")
    yield Mutant("a row's last element left out", "src/kernels/packs.hpp", "body(WholePack{n - kLanes<T>});",
                 "body(WholePack{n - kLanes<T> - 1});", "*softmax*")
    yield Mutant("dropout in evaluation", "modules/dropout.cpp", 'check("dropout", input, p);\n  if (!training || p == 0)',
                 'check("dropout", input, p);\n  if ((training && false) || p == 0)', "*ropout*")
    yield Mutant("dropout without its scale", "modules/dropout.cpp", "p < 1 ? 1 / (1 - p) : 0}", "1}", "*ropout*")


def losses():
    yield Mutant("classes smoothed alike whatever they weigh", "src/kernels/cross_entropy.cpp", "w * its(s.less)",
                 "its(s.less)", "cross entropy with class indices*")
    steps = "gradients of many losses*"
    yield Mutant("losses' gradients of the first step for all", "src/kernels/losses.cpp", "slopes(loss, x, t, scale, i, end, slope);",
                 "slopes(loss, x, t, scale, first, first + (end - i), slope);", steps)
    yield Mutant("losses' gradients in steps not added", "src/kernels/losses.cpp", "add ? at(v) + whole : whole",
                 "add ? whole : whole", steps)
    file = "src/kernels/reduce_driver.hpp"
    small = "small planes of columns*"
    yield Mutant("results of small planes left turned", file,
                 "if (m > 1) pack_transposed(ys, width, m, width, const_cast<T*>(y), m);", "", small)
    yield Mutant("gradients of the first small planes for all", file, "dy += first * m, y += first * m;", "y += first * m;", small)
    yield Mutant("what a stretch's later rows give left out", file, "join(all[i], all[half * width + i]);",
                 "join(all[i], all[i]);", "*extremes spread their gradient*")
    yield Mutant("a column's number not repeated to a stretch's end", "src/kernels/packs.hpp", "i < end; i += n == 1",
                 "i + 1 < end; i += n == 1", "*extremes spread their gradient*")
    yield Mutant("far rows a quarter apart begin a row too early", file, "n / 4 * row, width, sum, term",
                 "(n / 4 - 1) * row, width, sum, term", "*no cache holds*")
    yield Mutant("far rows squared beside each other", file, "is_far ? turns * row : row", "row", "*no cache holds*")
    yield Mutant("the rest of far rows counted as that of near ones", file, "n % (is_far ? 4 : kRows)", "n % kRows",
                 "*no cache holds*")
    yield Mutant("exponentials vanish before they are 0", "src/kernels/vector_math.hpp", "by_size<V>(-104, -746);",
                 "by_size<V>(-103, -746);", "*every function of one element*")
    yield Mutant("exponentials of what is masked are 1", "src/kernels/vector_math.hpp",
                 "is_all_from(-kLeastPower<V>, -x) ? V{}", "is_all_from(-kLeastPower<V>, -x) ? V{} + 1", "vectorised maps follow*")
    file = "src/kernels/cross_entropy.cpp"
    yield Mutant("label smoothing without the class weights", file, "surprise : surprise * at(weight);",
                 "surprise : surprise;", "cross entropy*")
    yield Mutant("label smoothing's gradient dropped", file, "- w * its(s.less);", "- w * its(s.less) * T(0);",
                 "cross entropy*")
    yield Mutant("an ignored target has a gradient", file, "its(s.ignored) != 0 ? Vector<T>{}",
                 "its(s.ignored) == 2 ? Vector<T>{}", "ignored rows*")
    yield Mutant("ignored targets count in the mean", file, "if (target[r] != p.ignore_index) total += weight_of(weight, target[r]);",
                 "total += target[r] == p.ignore_index ? 1 : weight_of(weight, target[r]);", "[loss]")
    yield Mutant("class index one too large accepted", file, "target[r] >= classes)", "target[r] > classes)", "*target*")
    yield Mutant("probabilities not smoothed", file, "const double q = (1 - smooth) * static_cast<double>(probability[i]) + each;",
                 "const double q = static_cast<double>(probability[i]) + 0 * each;", "[loss]")
    yield Mutant("negative log likelihood added to what was there", file, "if (!add) {\n      // All at once",
                 "if (add) {\n      // All at once", "*log likelihood*")


def optimisers():
    file = "src/kernels/optimizers.cpp"
    yield Mutant("Adam without the first bias correction", file, "rate(T(-(s.lr / (1 - std::pow(s.beta1, static_cast<double>(s.step))))))",
                 "rate(T(-s.lr))", "*step*PyTorch*")
    yield Mutant("Adam without the second bias correction", file, "root2(T(1 / std::sqrt(1 - std::pow(s.beta2, static_cast<double>(s.step)))))",
                 "root2(T(1))", "*step*PyTorch*")
    yield Mutant("AdamW's decay coupled", file, "decay(T(s.decoupled ? 0 : s.weight_decay)),\n        keep(T(s.decoupled ? 1 - s.lr * s.weight_decay : 1))",
                 "decay(T(s.weight_decay)),\n        keep(T(1))", "*step*PyTorch*")
    yield Mutant("state of the first parameter for all", file, "range(step, a, begin, end)",
                 "range(step, arrays[0], begin, end)", "SGD steps*")
    yield Mutant("Adam's decay taken for none", file, "!numbers.decays.is_first() && ", "",
                 "Adam and AdamW step*")
    yield Mutant("Adam from the farther end for a small beta1", file, " && numbers.near_old.is_first()", "",
                 "Adam alone*")
    yield Mutant("amsgrad's largest not kept", file, "max_square[i] = largest;", "", "*step*PyTorch*")
    yield Mutant("Nesterov as plain momentum", file, "d = kOptions ? nesterov(d + mu * m, m) : m;", "d = m;", "*step*PyTorch*")
    yield Mutant("dampening in the first step too", file, "if constexpr (kOptions) m = first(d, m);",
                 "if constexpr (kOptions) m = first(fresh * d, m);", "*step*PyTorch*")
    yield Mutant("epsilon inside RMSprop's root", file, "const T denominator = std::sqrt(spread) + s.eps;",
                 "const T denominator = std::sqrt(spread + s.eps);", "*ptimiser*")
    yield Mutant("Adagrad's decay one step early", file, "static_cast<double>(s.step - 1) * s.lr_decay",
                 "static_cast<double>(s.step) * s.lr_decay", "*ptimiser*")


def autograd():
    yield Mutant("version not bumped in place", "src/core/apply.cpp", "++target.buffer->version;", "", "every change in place*")
    yield Mutant("gradients overwritten where they meet", "src/core/propagate.cpp",
                 "const bool add = producer.gradient != nullptr;", "const bool add = false;", "gradients that arrive twice*")
    yield Mutant("one gradient handed to two inputs", "src/core/propagate.cpp",
                 "const bool is_twin = producer.gradient && producer.last_consumer == consumer;",
                 "const bool is_twin = false;")
    yield Mutant("a shared gradient changed in place", "src/core/gradient.cpp", "  node.gradient = unshared(node.gradient);", "")
    yield Mutant("a gradient of another shape accepted by hooks", "src/core/gradient.cpp",
                 "if (!(replaced.shape() == node.shape()) || replaced.dtype() != node.dtype)", "if (false)")
    yield Mutant("freed values used again", "src/core/propagate.cpp", "if (node.released) [[unlikely]]",
                 "if (false)", "a second backward*")
    yield Mutant("changed views not noticed", "src/core/apply.cpp", "if (impl.node && impl.history != impl.buffer->history) [[unlikely]]",
                 "if (false)")
    yield Mutant("a leaf changed in place while recording", "src/core/apply.cpp",
                 "if (grad_enabled && target.node && target.node->is_leaf()) [[unlikely]]", "if (false)")


def captured():
    plan, arrays = "src/core/frozen_plan.cpp", "src/core/recorder_arrays.cpp"
    yield Mutant("random numbers drawn once for all replays", "src/core/recorder.cpp", "draw_into(attributes, attribute_bytes);",
                 "has_draw_ = false;", "Random numbers are drawn anew*")
    yield Mutant("inputs of the recorded call in all others", plan, "if (inputs[i].twin == i) point(arrays[input_arrays[i]], data);", "",
                 "A step runs once*")
    yield Mutant("arrays in the middle of gaps whatever memory that takes", "src/core/plan_memory.cpp", "return amid <= packed ? amid",
                 "return amid >= packed ? amid", "*array*")
    yield Mutant("a small block over the end of its sheet", "src/base/memory.cpp", "account.sheet_cut + bytes > Sheet::kBytes",
                 "account.sheet_cut > Sheet::kBytes", "small blocks*")
    yield Mutant("arrays of one time in one place", "src/core/plan_memory.cpp", "if (!meet(*other, *array)) continue;", "continue;",
                 "No placement overlaps*")
    yield Mutant("a result that is held is overwritten", plan,
                 "if (output.array == PlanOutput::kNone || is_free(results[i], 0)) continue;", "continue;", "What is still held*")
    yield Mutant("a replay hides changes from the version counter", plan, "  count_changes();\n", "", "Changes in place reach*")
    yield Mutant("a hook that a plan does not know", plan, "if (extra && !extra->hooks.empty()) return false;", "", "A hook that is added*")
    yield Mutant("elements read while recording", arrays, "if (array.home == Home::external && !facts.is_written) return;", "return;",
                 "Reading elements*")
    yield Mutant("a constant changed in place by each replay", arrays, "if (plan_->arrays[id].home == Home::constant) keep_apart(id);", "",
                 "Arrays made without operations*")
    yield Mutant("an outside tensor taken for an input", "src/core/captured_step.cpp", "const std::vector<Tensor> copies = copies_of(inputs);",
                 "std::vector<Tensor> copies;\n    for (const Input& input : inputs) copies.push_back(input.tensor->detach());",
                 "An outside tensor*")
    yield Mutant("a plan of another mode", "modules/module.cpp", "if (training_ != on) detail::mode_changed(this);", "", "Another mode*")
    yield Mutant("checks of values left out of replays", "src/core/effect.cpp", "  if (recorder) [[unlikely]]\n", "  if (false)\n",
                 "Checks of values*")


def recurrent():
    file = "src/kernels/recurrent.cpp"
    yield Mutant("a reversed sequence forward", file, "return p.reverse ? p.steps - 1 - k : k;", "return k;",
                 "every layer gives PyTorch's*")
    yield Mutant("batch_first without the steps between", file, "if (p.batch_first) return {data + t * size, p.steps * size};",
                 "if (p.batch_first) return {data + t * size, p.batch * size};")
    yield Mutant("the second bias dropped", file, "bias[j] = s.in.b_ih[j] + s.in.b_hh[j];", "bias[j] = s.in.b_ih[j];",
                 "every layer gives PyTorch's*")
    yield Mutant("the last cell state's gradient dropped", file, "if (dc_n != nullptr) {", "if (false) {")
    yield Mutant("a projection's gradient from the next step dropped", file, "both[j] = own[j] + sent[j];", "both[j] = own[j] + 0 * sent[j];",
                 "recurrent layers have the gradients*")


def norms():
    yield Mutant("channels beyond the last of a share", "src/kernels/batch_norm.cpp",
                 "const std::int64_t c1 = std::min(c0 + together, channels);",
                 "const std::int64_t c1 = std::min(c0 + together - 1, channels);", "*norm*")
    loops = "src/kernels/norm_loops.hpp"
    moments, rows, batch = "src/kernels/moments.hpp", "src/kernels/row_norm.cpp", "src/kernels/batch_norm.cpp"
    yield Mutant("the rest of the mean dropped", loops, "shift(T(b - (m.mean - static_cast<double>(center) + m.rest) * (m.rstd * w)))",
                 "shift(T(b))", "*norm*")
    yield Mutant("unbiased variance to normalise by", moments, "(squares - deviations * rest) / static_cast<double>(n);",
                 "(squares - deviations * rest) / static_cast<double>(n - 1);", "*norm*")
    yield Mutant("eps outside the root", moments, "1 / std::sqrt(kept + eps)", "1 / (std::sqrt(kept) + eps)", "*norm*")
    yield Mutant("gradients of norms overwritten", moments, "T(add ? static_cast<double>(*gradient) + value : value);",
                 "T(add ? value : value);", "*norm*")
    yield Mutant("RMS norm takes the mean off", rows,
                 "if (p.centered)\n    for", "if (true)\n    for", "*norm*")
    yield Mutant("rows in turn beyond the eighth", rows, "if ((row - first) % in_turn == 0)", "if (row == first)", "*norm*")
    yield Mutant("mean of the gradient left in", rows, "return {p.centered ? sums.first / n : 0, sums.second / n};",
                 "return {0, sums.second / n};", "*norm*")
    yield Mutant("weights of the first group for all", rows, "w ? w + row % p.groups * p.channels : nullptr,", "w,", "*norm*")
    yield Mutant("moments of the first sample for all", rows, "moments + sample * p.groups,", "moments,", "*norm*")
    yield Mutant("moments of another group", rows, "row_of_channels(p, moments[row],",
                 "row_of_channels(p, moments[row / p.groups * p.groups],", "*norm*")
    yield Mutant("sums of strips of the last samples alone", batch, "if (first > 0) total +=", "if (false) total +=", "*norm*")
    yield Mutant("numbers of the first channel for a strip", batch, "const T number = numbers[c];",
                 "const T number = numbers[0];", "*norm*")
    yield Mutant("gradients of strips overwritten", batch, "if (out.add_dx) sum +=", "if (false) sum +=", "*norm*")
    yield Mutant("gradients of few elements of norms in float32", loops, "n < 64;", "n < 0;", "gradients of few*,gradients of small*")
    yield Mutant("the last elements of few left out", loops, "for (std::int64_t i = in_packs<T>(n); i < n; ++i) {",
                 "for (std::int64_t i = in_packs<T>(n); i + 1 < n; ++i) {", "*norm*")
    yield Mutant("gradients of short runs of norms overwritten", loops, "if (add) g +=", "if (false) g +=", "*norm*")
    yield Mutant("places of a channel not counted", batch, "{ return p.samples * p.spatial; }", "{ return p.samples; }",
                 "*norm*")
    yield Mutant("biased running variance", batch, "unbiased = n / (n - 1);", "unbiased = n / n;", "running statistics*")
    yield Mutant("momentum the wrong way round", batch, "mean[c] = T((1 - momentum) *", "mean[c] = T(momentum *",
                 "running statistics*")
    yield Mutant("evaluation's gradient through the batch's moments", batch, "if (p.fixed)\n            scale_run(",
                 "if (false)\n            scale_run(", "*norm*")
    yield Mutant("the rest of the mean dropped in the gradient", loops, "shift = T(-m.rstd * means.first - rest * steep);",
                 "shift = T(-m.rstd * means.first);", "*norm*")
    yield Mutant("evaluation by the batch's statistics", "modules/batch_norm.cpp",
                 ".training = this->is_training() || !this->running_mean.defined()", ".training = true", "*running statistics*")
    yield Mutant("batches not counted", "modules/batch_norm.cpp", "this->num_batches_tracked.add_(1);", "",
                 "*BatchNorm*")
    yield Mutant("cumulative average off by one", "modules/norm.cpp", "1 / (double(*args.inputs[3].as<std::int64_t>()) + 1)",
                 "1 / (double(*args.inputs[3].as<std::int64_t>()) + 2)", "*BatchNorm*")
    yield Mutant("one value for each channel accepted in training", "modules/batch_norm.cpp",
                 "if (input.numel() == input[1])", "if (false)", "*batch norm*")
    yield Mutant("running statistics change without a new version", "src/core/effect.cpp",
                 "for (const autograd::Input& input : written) ++input.tensor->impl()->buffer->version;", "",
                 "*batch norm changes*")
    yield Mutant("only the first sample's statistics tracked", "modules/instance_norm.cpp",
                 "spatial.numel(), samples, moments);", "spatial.numel(), 1, moments);", "InstanceNorm*")
    yield Mutant("RMS norm without an eps of its own", "modules/layer_norm.cpp", "eps.value_or(epsilon)", "eps.value_or(0 * epsilon)",
                 "rms norm*")
    yield Mutant("groups that do not divide the channels", "modules/layer_norm.cpp", "if (channels % groups != 0)",
                 "if (false)", "*norm*")


def transposed_and_resized():
    module, kernel, places = "modules/conv_transpose.cpp", "src/kernels/upsample.cpp", "src/base/resample.hpp"
    yield Mutant("output padding dropped", "src/base/window.cpp", "checked::add(*reach, output_padding[d])",
                 "checked::add(*reach, 0)", "transposed convolutions agree*")
    yield Mutant("padding taken off one side only", "src/base/window.cpp", "output[d] = *full - *padding;",
                 "output[d] = *full - w.padding_left;", "transposed convolutions agree*")
    yield Mutant("output channels of one group for all", module, "input, weight[1] * options.groups,", "input, weight[1],",
                 "transposed convolutions agree*")
    yield Mutant("one bias for all channels", "src/kernels/conv.cpp", "positions, b[plane % channels]",
                 "positions, b[0]", "transposed convolutions agree*")
    yield Mutant("output_padding of a whole stride", "src/base/window.cpp",
                 "if (output_padding[d] >= std::max(w.stride, w.dilation)) [[unlikely]]",
                 "if (output_padding[d] > std::max(w.stride, w.dilation)) [[unlikely]]", "*transposed convolutions name*")
    yield Mutant("padded dimensions in the order of the shape", "src/kernels/pad.cpp",
                 "const std::size_t pair = std::size_t(p.rank - 1 - d) * 2;", "const std::size_t pair = std::size_t(d) * 2;",
                 "padding of one to three*")
    yield Mutant("copies beyond the end", "src/kernels/copy.cpp", "last - from >= 4 * kAll;", "last - from >= 2 * kAll;",
                 "elements are copied*")
    yield Mutant("the last vector of a copy left out", "src/kernels/copy.cpp", "store<unsigned char>(load(last), last_to);",
                 "(void)last_to;", "elements are copied*")
    yield Mutant("what an axis remembers not moved on", kernel, "if (i < begin_ || i + n > end_) [[unlikely]]",
                 "if (i < begin_ || begin_ == end_) [[unlikely]]", "*rows of high planes*")
    yield Mutant("small planes without the value", "src/kernels/pad.cpp", "y[i] = own[source_[i]];",
                 "y[i] = own[source_[i] % inputs_];", "*pad*")
    yield Mutant("gradients of small planes overwritten", "src/kernels/pad.cpp",
                 "T>(add ? static_cast<double>(dx[j]) + sum[j] : sum[j]);", "T>(add ? sum[j] : sum[j]);", "*pad*")
    yield Mutant("circular repeats what was cropped", "src/kernels/pad.cpp", "first = std::max<std::int64_t>(-left, 0), last = std::min(in, out - left);",
                 "first = 0, last = in;", "padding of one to three*")
    yield Mutant("linear places at the edges", places, "* (double(i) + 0.5) - 0.5;", "* double(i);",
                 "resizing agrees*")
    twice = "images of twice the width*"
    yield Mutant("blended pairs of a later tile without what is before it", kernel, "reads_before = first > 0;",
                 "reads_before = false;", twice)
    yield Mutant("the end of a row of blended pairs", kernel, "sum[-1] = sum[0], sum[columns.read] = sum[columns.read - 1];",
                 "sum[-1] = sum[0], sum[columns.read] = 0;", twice)
    yield Mutant("one place for all of some rows of pairs", kernel, "blend_twice(sums[i] +", "blend_twice(sums[0] +", twice)
    yield Mutant("gradients of blended pairs beside a tile", kernel, "join_pairs(sum + 2 * j - first,",
                 "join_pairs(sum,", twice)
    half = "images of half the width*"
    yield Mutant("halved images at twice the values", kernel, "is_halved ? 0.5 : 1);", "1);", half)
    yield Mutant("gradients of halved images at twice the values", kernel, "as_floats(0.5 * load(sum + i))",
                 "as_floats(load(sum + i))", half)
    yield Mutant("a fifth row overwrites four", kernel, "if (any_) all =", "if (false) all =", "*resiz*")
    yield Mutant("places of the sizes for a factor", "modules/upsample.cpp", "axis.step = 1 / o.scale_factor[d];",
                 "axis.step = 0;", "a factor is rounded down*")
    yield Mutant("align_corners dropped", "modules/upsample.cpp", "o.align_corners.value_or(false)", "false",
                 "*weighs the two around*")
    yield Mutant("gradient of the second neighbour dropped", kernel, "      add(s.second, s.weight);\n", "",
                 "resizing agrees*")
    yield Mutant("Keys's cubic of another a", places, "constexpr double a = -0.75;", "constexpr double a = -0.5;",
                 "resizing agrees*")
    yield Mutant("cubic gradients beyond the edge", kernel, "gathered[taps[i].at[k] - j",
                 "gathered[taps[i].first + k - j", "resizing agrees*")
    yield Mutant("gradients of a row left for the next", kernel, "store<double>(Doubles{}, sum + j);", "",
                 "resizing agrees*")


def gates():
    file = "src/kernels/recurrent_cells.hpp"
    stored = "every layer gives PyTorch's*"
    yield Mutant("LSTM's gates in another order", file,
                 "T *gi = s.gates, *gf = gi + n, *gg = gf + n, *go = gg + n;\n    // c_t",
                 "T *gi = s.gates, *gg = gi + n, *gf = gg + n, *go = gf + n;\n    // c_t", stored)
    yield Mutant("GRU's update the other way", file, "fused(at(gz), at(s.h_before) - m, m)",
                 "fused(at(gz), m - at(s.h_before), at(s.h_before))", stored)
    yield Mutant("GRU's gradient of the hidden side", file, "at.store(hn, d_new * r);", "at.store(hn, d_new);", stored)
    yield Mutant("what GRU keeps of the state has no gradient", file, "at.store(s.dh, dh * z);", "at.store(s.dh, 0 * z);", stored)


def attention():
    file = "modules/multihead_attention.cpp"
    stored = "every layer gives PyTorch's*"
    yield Mutant("key and value projections exchanged", file, "return {part(query, 0), part(key, 1), part(value, 2)};",
                 "return {part(query, 0), part(key, 2), part(value, 1)};", stored)
    yield Mutant("heads and positions exchanged", file,
                 "const Tensor together = g.batch_first ? x.permute({0, 2, 1, 3}) : x.permute({2, 0, 1, 3});",
                 "const Tensor together = x.permute({0, 2, 1, 3});", stored)
    yield Mutant("key_padding_mask ignored", file, "if (arguments.key_padding_mask.defined())\n    mask",
                 "if (false)\n    mask", stored)
    yield Mutant("appended keys hidden by the mask", file, "pad(mask, {0, more})",
                 "pad(mask, {0, more}, PadMode::zeros, -1e30)", stored)


def max_pools():
    file = "src/kernels/max_pool.cpp"
    pairs = "src/kernels/max_pool_pairs.hpp"
    yield Mutant("places of 32 bits in any plane", "src/kernels/max_pool.cpp",
                 "has_room = sizeof(T) == 8 || p.has_narrow_places();", "has_room = true;",
                 "*planes of more than 2^32*")
    columns = "src/kernels/max_pool_columns.hpp"
    yield Mutant("narrow vectors of columns beyond the row", columns, "Places{}, std::min(c, end - wide));",
                 "Places{}, c);", "adaptive max pools equal*")
    yield Mutant("the first NaN of whole rows chosen", file,
                 "std::int64_t at = n - 1;\n  while (x[at] == x[at]) --at;",
                 "std::int64_t at = 0;\n  while (x[at] == x[at]) ++at;", "*max pool*")
    yield Mutant("planes of a row joined though they have several", file,
                 "return p.d.in == 1 && p.h.in == 1 && p.is_one_row()", "return p.is_one_row()", "*max pool*")
    lines = "src/kernels/max_pool_lines.hpp"
    yield Mutant("rows of windows written behind the last", lines,
                 "std::min(lines.inside, line.y_end - line.y - N + 1);",
                 "lines.inside;", "rows shorter than a vector*")
    yield Mutant("rows joined though windows do not fill them", lines, "!kPlaces && p.w.is_tiled() ? last - first : 1;",
                 "!kPlaces ? last - first : 1;", "rows shorter than a vector*")
    yield Mutant("places counted through all planes", lines, "if (line.place == size) line.place = 0;",
                 "if (line.place == 2 * size) line.place = 0;", "rows shorter than a vector*")
    yield Mutant("a NaN of windows in one row lost without places", lines, "best = v == v ? number : v;",
                 "best = number;", "*max pool*")
    yield Mutant("the largest run of a window taken for its first", file,
                 "largest.at + place_of_largest(largest.best, x + largest.at, n)",
                 "first + place_of_largest(largest.best, x + first, n)", "adaptive max pools equal*")
    finite = "src/kernels/max_pool_small.hpp"
    yield Mutant("elements that are not finite taken as if they were", finite, "if (!is_all_from(0, zero + zeros)) return false;",
                 "if (!is_all_from(0, zero - zero)) return false;", "*max pool*")
    yield Mutant("places beside the row chosen", finite, "taps(x + row, kNone, tap);", "taps(x + row, kLowest, tap);",
                 "*max pool*")
    yield Mutant("the first tap of equal ones after the second", finite, "        where = tap[1] == best ? at + 1 : where;",
                 "        where = tap[1] == best && where == 0 ? at + 1 : where;", "*max pool*")
    yield Mutant("a row kept for all slices", finite, "kept_row = i * height + j;", "kept_row = j;", "*max pool*")
    halves = "src/kernels/max_pool_halves.hpp"
    short = "planes of short rows*"
    yield Mutant("elements beside x read", halves, "if (static_cast<std::uint64_t>(at) >= limit)", "if (limit == 0)", short)
    yield Mutant("places of padding of windows two columns apart", halves, "if (s.is_cut) kept_where -= s.outside[0];", "",
                 short)
    yield Mutant("columns of the next row in windows two columns apart", halves,
                 "+ across.kernel > p.w.in;", "+ across.kernel > p.w.in + 1;", "*max pool*," + short)
    yield Mutant("several windows taken for a single one", "src/kernels/max_pool_plan.hpp",
                 "q.out[i] == 1 && q.kernel[i] < q.in[i]", "q.kernel[i] < q.in[i]", "*max pool*")
    yield Mutant("planes paired though their rows are long", halves, "planes = n <= kHalf && s.rows", "planes = s.rows", short)
    yield Mutant("the last plane paired with one that is not there", halves, "last - first >= 2 * rows", "last > first", short)
    yield Mutant("a row kept for all windows", halves, "if (at != kept_at) {", "if (kept_at == s.size) {", "*max pool*," + short)
    yield Mutant("a NaN of windows two columns apart lost without places", halves, "best = v == v ? best : v;", "",
                 "*max pool*," + short)
    yield Mutant("slices of a window as if they were its rows", halves, "at += skip, line +=", "line +=", short)
    separable = "src/kernels/max_pool_separable.hpp"
    narrow, beside_planes = "rows of any number of windows a column*", "windows a column or two apart read*"
    yield Mutant("the last of equal columns or rows", separable, "where = v >= best ? at : where;", "where = v > best ? at : where;",
                 narrow)
    yield Mutant("the zero of a later row or column", separable, "_mm256_max_ps(best, v)", "_mm256_max_ps(v, best)", "values are*")
    yield Mutant("columns beside the row in windows three wide", separable, "_mm256_min_ps(borders->bound[k], column)", "column",
                 narrow)
    yield Mutant("places of padding where columns are no larger", separable, "where = where > least ? where : least;", "", narrow)
    yield Mutant("a NaN of the first two columns missed", separable, "_mm256_cmp_ps(first, second, _CMP_UNORD_Q)",
                 "_mm256_cmp_ps(first, first, _CMP_UNORD_Q)", "one NaN in any column*")
    yield Mutant("a NaN of the last column missed", separable, "_mm256_cmp_ps(best, best, _CMP_UNORD_Q)",
                 "_mm256_cmp_ps(best, best, _CMP_FALSE_OQ)", "one NaN in any column*")
    yield Mutant("a NaN of a column between missed", separable, "_mm256_cmp_ps(other, other, _CMP_UNORD_Q)",
                 "_mm256_cmp_ps(other, other, _CMP_FALSE_OQ)", "one NaN in any column*")
    yield Mutant("windows in pairs stored in the order of pairs", separable, "in_pairs ? Pairs::ordered(lanes) : lanes",
                 "lanes", narrow)
    yield Mutant("borders of the last windows left out", separable, "v + 2 * N >= row ? last_borders : &between_",
                 "&between_", narrow)
    yield Mutant("odd columns taken for even ones", separable, "S == 1 ? k : k & -2", "k", narrow)
    yield Mutant("rows of windows taller than three cut", separable,
                 "for (std::int64_t r = 3; r < tall; ++r) add(a + v - r * row);", "", "rows\\, windows and planes*")
    yield Mutant("a vector written behind the results", separable, "if (left < N) {", "if (false) {", beside_planes)
    yield Mutant("a row read in front of the planes", separable, "if (at < 0 || at + reach > all) {",
                 "if (at + reach > all) {", beside_planes)
    yield Mutant("a row read behind the planes", separable, "if (at < 0 || at + reach > all) {", "if (at < 0) {", beside_planes)
    yield Mutant("as many rows of windows as of elements", separable, "(maxima.room() - down.kernel) / down.stride + 1",
                 "maxima.room()", "rows\\, windows and planes*")
    yield Mutant("windows too tall to have room", separable, "h.kernel <= SeparableMaxima::kRows && w.kernel > 1", "w.kernel > 1", "rows\\, windows and planes*")
    yield Mutant("the last of equals wins", pairs, "return (v > best) | (v != v);", "return (v >= best) | (v != v);",
                 "*max pool*")
    yield Mutant("NaN loses", pairs, "return (v > best) | (v != v);", "return v > best;", "*NaN*")
    yield Mutant("places of the second of four vectors of elements", pairs, "lanes + (2 * i + 1) * N,", "lanes + 2 * i * N,",
                 "rows\\, windows and planes*")
    yield Mutant("windows of several rows by pairs of pairs", "src/kernels/max_pool_wide.cpp",
                 "p.d.in == 1 && p.h.in == 1 && p.is_one_row() && p.w.is_tiled()", "p.w.is_tiled()",
                 "rows\\, windows and planes*")
    rows, columns = "src/kernels/max_pool_rows.hpp", "src/kernels/max_pool_columns.hpp"
    yield Mutant("rows in the place of one that is listed", rows, "if ((used_ >> slot & 1) != 0 || rows_ == kSlots) join();",
                 "if (rows_ == kSlots) join();", "*max pool*,rows\\, windows and planes*")
    yield Mutant("rows of a tile kept for the next", rows, "for (std::int64_t& key : key_) key = -1;", "",
                 "rows\\, windows and planes*")
    yield Mutant("places of windows apart at their first tap", rows, "from += step, at += static_cast<Place>(step);",
                 "from += step;", "windows of doubles any*")
    yield Mutant("windows apart read behind the planes", rows,
                 "const bool completes = end - begin > 1 && first + (whole - 1) * s + reach < room;",
                 "const bool completes = end - begin > 1;", "windows of doubles any*")
    yield Mutant("places of padding where nothing is larger", rows, "where = first < 0 ? first_taps(at) : at;", "where = at;",
                 "*max pool*")
    yield Mutant("the last of equal columns", columns, "(is_nan ? place : kLast - place);", "place;", "*max pool*")
    yield Mutant("zeros of both signs apart", columns, "std::bit_cast<Place>(v + 0.0f)", "std::bit_cast<Place>(v)",
                 "*max pool*,values are*")
    yield Mutant("columns beyond the row hold what was there", columns,
                 "std::fill(key_ + end, key_ + count, std::numeric_limits<Key>::min());", "", "*max pool*")
    yield Mutant("dilation of max pools dropped", "src/kernels/max_pool_plan.hpp", ".dilation = q.dilation[i]", ".dilation = 1", "*max pool*")
    gradients = "src/kernels/max_pool_grad.cpp"
    yield Mutant("gradient of max pools overwritten", gradients,
                 "for (std::int64_t i = 0; i < b.n; ++i) dx[i] += static_cast<T>(sum[i]);",
                 "for (std::int64_t i = 0; i < b.n; ++i) dx[i] = static_cast<T>(sum[i]);", "*max pool*")
    yield Mutant("several windows' gradients overwritten", gradients, "sum[std::min(at, n)] += static_cast<double>(dy[o]);",
                 "sum[std::min(at, n)] = static_cast<double>(dy[o]);", "*max pool*")
    yield Mutant("gradients of few windows overwritten", gradients, "if (at < n) dx[at] += dy[o];",
                 "if (at < n) dx[at] = dy[o];", "*max pool*")
    yield Mutant("many windows' gradients summed as few", gradients, "return most <= 8;", "return true;",
                 "a gradient that many windows send*")
    beside = "windows side by side give*"
    gather, apart = "src/kernels/max_pool_gather.hpp", "windows one step apart*"
    yield Mutant("indices of 64 bits cut to 32", gather, "front | Places(behind != 0)", "front", f"{beside},{apart}")
    yield Mutant("few indices of 64 bits cut to 32", gather, "index[i] >> 31 == 0 ? static_cast<std::int32_t>(index[i]) : -1",
                 "static_cast<std::int32_t>(index[i])", apart)
    yield Mutant("windows of the row before behind a row", gather, "skip(at + n, at + n + 1);", "", apart)
    yield Mutant("windows in front of the first row", gather, "choices.skip(0, at);", "", apart)
    yield Mutant("windows above the first row", gather, "choices.skip(at, at + (top - down.first) * plan.pitch);", "", apart)
    yield Mutant("windows below the last row", gather,
                 "choices.skip(at + (bottom - down.first) * plan.pitch, at + slice);", "", apart)
    yield Mutant("rows of windows as long as those of positions", gather, "p.w.out == plan.pitch", "true", apart)
    yield Mutant("the windows beside a part of a row left out", gather, "pitch = width + kNext", "pitch = width", apart)
    yield Mutant("gradients of windows one step apart not added", gather,
                 "if (add) sum[0] += load(to + i), sum[1] += load(to + i + N);", "", apart)
    yield Mutant("the last gradients of windows one step apart not added", gather, "add ? to[i + k] + some[k] : some[k]",
                 "some[k]", apart)
    yield Mutant("sums of many rows' gradients in float32", gather, "count(around(p.d)) * count(around(p.h)) <= kMostRows",
                 "count(around(p.d)) <= kMostRows", "gradients of nine rows*")
    yield Mutant("the last vector of windows side by side behind the row", gradients,
                 "const std::int64_t o = std::min(block, out - N);", "const std::int64_t o = block;", beside)
    yield Mutant("halves of windows side by side exchanged", gradients, "kHalf * 2 + l % kPart / 2",
                 "(1 - kHalf) * 2 + l % kPart / 2", beside)
    yield Mutant("windows side by side in the order of another width", gradients,
                 "(l % kPart / kWindows * (N / K) + l / kPart * kWindows + l % kPart % kWindows)...",
                 "(l % kPart / 2 * (N / 2) + l / kPart * 2 + l % kPart % 2)...", beside)
    yield Mutant("halves of lanes in turns exchanged", "src/kernels/vectors.hpp",
                 "(L / 2 + kHalf * n / 2 + L % 2 * n)...", "(L / 2 + (1 - kHalf) * n / 2 + L % 2 * n)...", "*average pool*")
    yield Mutant("gradients of windows side by side stored over others", gradients, "if (!add && is_side_by_side(p))",
                 "if (is_side_by_side(p))", beside)
    yield Mutant("unpooling leaves what was there", "src/kernels/max_unpool.cpp",
                 "std::fill(y + first * p.out, y + last * p.out, T(0));", "", "*unpool*")
    yield Mutant("volume of a cut-off window of LPPool", "modules/lp_pool.cpp",
                 "* volume(options), 1 / options.norm_type);", ", 1 / options.norm_type);", "every layer gives PyTorch's*")


def functions():
    gates, powers, pieces = "src/kernels/vector_gates.hpp", "src/kernels/vector_power.hpp", "src/kernels/pieces.hpp"
    yield Mutant("what the square loses not in the power of gelu", gates,
                 "return exp_parts(square, product_rest(a, half, square));", "return exp_parts(square);",
                 "every function of one element*")
    yield Mutant("what the argument of gelu's approximation loses dropped", gates,
                 "const auto [shifted, rest] = exp_parts(-z.high, -z.low);\n  // 1 + e^-z",
                 "const auto [shifted, rest] = exp_parts(-z.high);\n  // 1 + e^-z", "every function of one element*")
    yield Mutant("the last three of short runs left out", "src/kernels/reduce.cpp",
                 "if (last == fours && runs % 4 != 0) extremes(", "if (last == fours && runs % 4 == 1) extremes(",
                 "sums and extremes of many short runs*")
    yield Mutant("the first four of narrow rows twice", "src/kernels/extreme_of.hpp",
                 "several_at<float, 4>(x + j * row + last), high);", "several_at<float, 4>(x + j * row), high);",
                 "extremes and their places*")
    yield Mutant("sums of short runs without the last", "src/kernels/average_runs.hpp",
                 "const std::int64_t four = std::min(i, runs - 4);", "const std::int64_t four = std::min(i, runs - 5);",
                 "sums and extremes of many short runs*")
    yield Mutant("exponentials of doubles beyond the normal powers by the short way", "src/kernels/vector_math.hpp",
                 "by_size<V>(-87, -708), negative_of(x)", "by_size<V>(-87, -760), negative_of(x)",
                 "every function of one element*")
    yield Mutant("numbers without an end to any exponent as if they had one", powers,
                 "is_all_from(Limits::min(), x + 0 * (x + y))", "is_all_from(Limits::min(), x)", "powers are within*")
    yield Mutant("gradients of dense windows from the parts of sparse ones", "src/kernels/avg_pool_uneven.hpp",
                 "is_dense ? spread(std::true_type())", "is_dense ? spread(std::false_type())", "*adaptive*")
    yield Mutant("runs of squares that begin one late", "src/kernels/elementwise.hpp",
                 "for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];",
                 "for (std::int64_t i = 1; i < n; ++i) y[i] = x[i] * x[i];", "maps give the same bits*")
    yield Mutant("tail of silu scaled before it is multiplied", gates, "return scaled_down(fused(q, rest, q), shifted);",
                 "return q * scaled_down(1 + rest, shifted);", "every function of one element*")
    yield Mutant("gelu far below 0 from the pieces near it", gates, "constexpr float kFar = -5.3f;",
                 "constexpr float kFar = -5.5f;", "every function of one element*")
    yield Mutant("piece of the normal distribution beside the right one", pieces, "+ kQuarter / 2;",
                 "+ kQuarter / 4;", "every function of one element*")
    yield Mutant("logarithm of the exponent in one part", "src/kernels/vector_math.hpp", "n * 1.42860677e-6f", "n * 0.0f",
                 "every function of one element*")
    yield Mutant("roots of two in one part", "src/kernels/vector_math.hpp", "looked_up(kRootLow, piece)", "FullFloat{}",
                 "vectorised maps follow*")
    yield Mutant("what exp reduces by in one part", "src/kernels/vector_math.hpp", "fused(n, -3.1946185e-5f, ",
                 "fused(n, -3.19e-5f, ", "every function of one element*")
    yield Mutant("tanh ends too early", "src/kernels/vector_math.hpp", "at_most<V>(TanhPieces::end, magnitude_of(x))",
                 "at_most<V>(TanhPieces::end / 2, magnitude_of(x))", "every function of one element*")
    yield Mutant("odd powers without a sign", powers, "odd ? with_sign_of(p, x) : p", "p", "powers are within*")
    yield Mutant("logarithm of a power in one part", powers, "limited == power ? beyond : Doubles{}", "Doubles{}",
                 "powers are within*")


def moves():
    file = "src/kernels/movement.cpp"
    yield Mutant("a part of a vector behind a run", file, "at = std::min(i, n - kStep);", "at = i;", "runs of every length*")
    yield Mutant("rows of an index that wrap stay where they were", "src/kernels/index.cpp",
                 "from -= extent_[d] * step_[d];", "", "gather*")
    yield Mutant("rows after a part of one gathered from where it began", "src/kernels/index.cpp",
                 "from += count * pitch - at * step;", "from += count * pitch;", "gather*")
    yield Mutant("rows of a gathered gradient begin where the first does", "src/kernels/index.cpp",
                 "row.from + skipped", "row.from + 0 * skipped", "*index*")
    yield Mutant("short rows selected by their first part alone", "src/kernels/index.cpp",
                 "*const back = from + n - kPart", "*const back = from", "*rows of any length*")
    yield Mutant("rows of a thread selected from the first index on", "src/kernels/index.cpp",
                 "from = index + first % count;", "from = index;", "*rows of any length*")
    yield Mutant("more indices than places are listed", "src/kernels/index.cpp",
                 "Places(index + j, std::min(count - j, Places::kMost), n)", "Places(index, std::min(count - j, Places::kMost), n)",
                 "*columns that many rows select*")
    yield Mutant("rows after whole fours of selected columns left out", "src/kernels/index.cpp",
                 "done = outer - outer % Places::kRows;", "done = outer;", "*columns that many rows select*")
    yield Mutant("few rows joined without the second", "src/kernels/sum_row.hpp", "std::int64_t t = 1; t < terms",
                 "std::int64_t t = 2; t < terms", "*reduce any set of dimensions*")
    yield Mutant("gradients of maps that are added stored", "src/kernels/elementwise.cpp", "to[j] += some[j];",
                 "to[j] = some[j];", "*maps stored past*")
    yield Mutant("rows of gradients that were streamed left out", "src/kernels/avg_pool_small.hpp",
                 "if (is_new) stream<T>(a, below);", "if (!is_new) stream<T>(a, below);", "*stored past the caches*")
    yield Mutant("short runs of a gradient with each other's distances", "src/kernels/broadcast.cpp",
                 "{kept.stride[k], p.rows.stride[k]}, count, n);", "{p.rows.stride[k], kept.stride[k]}, count, n);", "*operands of any layout*")
    yield Mutant("short runs of one kept row taken with the next", "src/kernels/broadcast.cpp",
                 "kept.extent - o % kept.extent);", "kept.extent);", "*broadcast*,*operands of any layout*")
    yield Mutant("gradients of short runs overwritten", "src/kernels/broadcast.cpp",
                 "dx[o + i] = add ? dx[o + i] + sums[i] : sums[i];", "dx[o + i] = sums[i];", "*broadcast*")
    yield Mutant("rows of integers with a number for each as if they were doubles", "src/kernels/broadcast.cpp",
                 "= !std::is_floating_point_v<T>  ? WithNumber::nothing", "= false  ? WithNumber::nothing",
                 "integer arithmetic wraps")
    yield Mutant("runs of the first block alone summed", "src/kernels/reduce.cpp", "total[c] += sum[c];",
                 "if (o.at[0] == first * n) total[c] += sum[c];", "sums over dimensions on both sides*")
    yield Mutant("summed gradients of what is taken away not turned", "src/kernels/broadcast.cpp",
                 "return d.f(dx, dx, dx, dx, plan.reduce.outputs);", "return;", "an operand that is a number*")
    yield Mutant("the gradient of a divisor as a quotient", "src/kernels/broadcast.cpp",
                 "std::is_same_v<Op, Mul> ? kWithNumber<Op, T> : WithNumber::nothing}};",
                 "!kReadsOperands<Op> ? WithNumber::nothing : kWithNumber<Op, T>}};", "an operand that is a number*")
    yield Mutant("numbers for the rows of a far sum without room", "src/kernels/broadcast_tiles.hpp",
                 "buffer_[std::max(kBuffer, kFarColumns) * sizeof(double)", "buffer_[kBuffer * sizeof(double)",
                 "a gradient that no cache holds*")
    yield Mutant("the last of few rows left out of a sum", "src/kernels/reduce_driver.hpp",
                 "return sum_places(x + start.at[0], row, p.count, width, sum);",
                 "return sum_places(x + start.at[0], row, p.count - 1, width, sum);", "sum, mean and product*")
    yield Mutant("the last element of a short window in one row not looked at", "src/kernels/max_pool.cpp",
                 "largest.take(x, row + w.first + w.step, row + w.last, w.step);",
                 "largest.take(x, row + w.first + w.step, row + w.last - 1, w.step);", "adaptive*")
    yield Mutant("the first eight rows alone multiplied", "src/kernels/reduce.cpp",
                 "for (std::int64_t j = 0; j < n; j += kTurn, x += kTurn * row) {",
                 "for (std::int64_t j = 0; j < 1 && n > 0; j += kTurn, x += kTurn * row) {", "products of runs and*")
    yield Mutant("NaN lost beside a number for a row", "src/kernels/broadcast_tiles.hpp",
                 "return a > v || a != a ? a : v;", "return a > v ? a : v;", "an operand that is a number*")
    yield Mutant("rows of doubles with a number for each as if they were float32", "src/kernels/broadcast_tiles.hpp",
                 "if (size == sizeof(double)) rows = rows_with_number<double>;", "", "an operand that is a number*")
    yield Mutant("the first columns for the last of a row times a matrix", "src/kernels/gemm.cpp",
                 "std::copy_n(columns + kLanes<T> - (p.n - whole), p.n - whole, c + whole);",
                 "std::copy_n(columns, p.n - whole, c + whole);", "*row times a matrix*")
    yield Mutant("a column's operand laid out for its first row alone", "src/kernels/broadcast_tiles.hpp",
                 "from += s.row, to += n) {", "to += n) {", "*operands of any layout*")
    yield Mutant("every row of a permutation placed behind the one before", file,
                 "m.row_step = p.stride[across], m.to_step = to_stride[across];",
                 "m.row_step = p.stride[across], m.to_step = m.columns;", "permutations move*")
    yield Mutant("short runs without their end", file, "copy(o, 0, 16), copy(o, n - few, 16);",
                 "copy(o, 0, 16), copy(o, few, 16);", "runs of every length*")


def wired():
    graph, reader, embedding = "modules/graph.cpp", "src/config/layers_reader.cpp", "src/kernels/embedding.cpp"
    yield Mutant("a result dropped while it is still read", graph, "if (values_[value].last_reader == i)",
                 "if (values_[value].last_reader >= i)", "*graph*")
    yield Mutant("a result kept when nobody reads it any more", graph, "values[value] = Tensor();", "continue;", "*graph*")
    yield Mutant("a layer without inputs reads the graph's", graph, "wired.inputs.push_back(nodes_.empty() ? 0 : nodes_.back().first_value);",
                 "wired.inputs.push_back(0);", "*graph*")
    yield Mutant("further results in the wrong order", graph, "keep(first + k, std::move(results[k]));",
                 "keep(first + (k == 0 ? 0 : count - k), std::move(results[k]));", "*graph*")
    yield Mutant("a graph's outputs all the main one", graph, "results.push_back(values[value]);",
                 "results.push_back(values[outputs_[value - value]]);", "*graph*")
    yield Mutant("the input's outline for a further result", reader,
                 "spec.further.assign(outputs->begin() + 1, outputs->end());",
                 "spec.further.assign(outputs->begin(), outputs->end() - 1);", "*beside its main result*")
    yield Mutant("indices taken for numbers", reader, "if (wanted == given) continue;", "continue;", "*element types*")
    yield Mutant("the padding row gets a gradient", embedding, "if (row == p.padding_row) continue;", "",
                 "*a table's gradient*")
    yield Mutant("sums of the row before kept", embedding, "(k == begin_run ? 0 : sums[i])", "sums[i]",
                 "*a table's gradient*")
    yield Mutant("divided only where nothing is to be", embedding, "if (divisor != 1)", "if (divisor == 1)",
                 "*a table's gradient*")
    yield Mutant("frequency of the wrong row", embedding, "double(end_run - begin_run)", "double(end_run)",
                 "*a table's gradient*")
    yield Mutant("rows that nobody reads keep what was there", embedding, "  if (!add)\n    parallel_for(p.rows",
                 "  if (!add && p.count > 0)\n    parallel_for(p.rows", "*a table's gradient*")
    yield Mutant("rows below the bound scaled up to it", embedding, "if (!(norm > bound.max_norm)) continue;", "",
                 "rows read and longer*")
    yield Mutant("a block's inputs all the first", reader, "inputs[inside.size()].outline", "inputs[0].outline",
                 "*under names of its own")
    yield Mutant("a block of too few inputs accepted", graph, "if (block && block->input_count_ != wired.inputs.size())",
                 "if (false)", "*graph in a graph*")
    yield Mutant("short planes of a thread from the first channel on", "src/kernels/prelu.cpp",
                 "std::int64_t c = unit % planes;", "std::int64_t c = 0;", "threads find the channels*")
    yield Mutant("the last vector of a short plane left out", "src/kernels/prelu.cpp",
                 "      store<T>(last, to + rest);\n", "", "*prelu*")
    yield Mutant("rows of few channels with one slope", "src/kernels/prelu.cpp",
                 "slopes[i - units.channels]", "slopes[0]", "*prelu*")
    yield Mutant("rows of many channels with the slopes of the first", "src/kernels/prelu.cpp",
                 "kChannels ? load(w + i)", "kChannels ? load(w)", "*prelu*")
    yield Mutant("slope of the wrong channel", "src/kernels/prelu.cpp", "plane % channels}",
                 "plane / channels % channels}", "*prelu*")
    yield Mutant("parts of a line longer than there is room for", "src/kernels/conv_weight.cpp",
                 "most.positions / most.lanes, most.vectors)", "ceil_div(most.positions, most.lanes), most.vectors)",
                 "a weight gradient that is summed in slices*")
    shares = "src/kernels/parallel.cpp"
    yield Mutant("what a slow thread has not begun left to it", shares, "i < threads_; ++i, t =", "i < 1; ++i, t =",
                 "a thread that has done its units*")
    yield Mutant("the last piece of a share left out", shares, "pieces < pieces_ ? n >> pieces : 0", "n >> pieces",
                 "every unit runs once*")
    yield Mutant("Bilinear bounded by the second input", "modules/bilinear.cpp", "1 / std::sqrt(double(n1))",
                 "1 / std::sqrt(double(n2))", "*bilinear starts*")


MUTANTS = [
    mutant
    for family in (geometry, average_pools, convolutions, dense, losses, optimisers, autograd, captured, recurrent, norms,
                   transposed_and_resized, gates, attention, max_pools,
                   functions, moves, wired)
    for mutant in family()
]
