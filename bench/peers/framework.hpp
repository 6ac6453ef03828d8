#pragma once

#include <memory>

#include "peer.hpp"

// The tasks of a framework with tensors and gradients, written once. `L` spells what differs between two frameworks:
//
//     Tensor, NoGrad, Adam and the like    types
//     zeros(shape, is_double), data<T>     memory to fill
//     grad(y, leaves, gradient, retain)    gradients of a recorded result
//     conv, pool, linear...                the operations, taking the task's arguments
namespace bench {

using Extents = std::vector<std::int64_t>;

/// Options of a convolution, the same along each of its axes.
struct Strides {
  std::int64_t stride = 1, padding = 0, groups = 1, dilation = 1;
};

/// Those of a pool, the same along each of its axes.
struct Windows {
  std::int64_t kernel, stride, padding = 0;
  bool counts_padding = true;
};

template <class L>
struct Framework {
  using Tensor = typename L::Tensor;
  using Tensors = std::vector<Tensor>;
  using Function = std::function<Tensor()>;

  // --- inputs
  // ---------------------------------------------------------------------------------------------------------

  static Tensor filled(const Extents& shape, std::uint32_t seed, double low = -1, double high = 1,
                       bool is_double = false) {
    Tensor out = L::zeros(shape, is_double);
    if (is_double)
      fill(L::template data<double>(out), L::numel(out), seed, low, high);
    else
      fill(L::template data<float>(out), L::numel(out), seed, low, high);
    return out;
  }

  static Tensor weight(const Extents& shape, std::uint32_t seed) {
    std::int64_t fan_in = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) fan_in *= shape[i];
    const double bound = shape.size() > 1 ? weight_bound(fan_in) : 0.1;
    return filled(shape, seed, -bound, bound);
  }

  /// Row numbers or class labels.
  static Tensor labels(const Extents& shape, std::uint32_t seed, std::int64_t classes) {
    Tensor out = L::integers(shape);
    fill_labels(L::template data<std::int64_t>(out), L::numel(out), seed, classes);
    return out;
  }

  static void read(Values& values, const Tensor& tensor) {
    if (L::is_double(tensor))
      values.add(L::template data<double>(tensor), L::numel(tensor));
    else
      values.add(L::template data<float>(tensor), L::numel(tensor));
  }

  static void read_all(Values& values, const Tensors& tensors) {
    for (const Tensor& tensor : tensors) read(values, tensor);
  }

  // --- one operation
  // --------------------------------------------------------------------------------------------------

  /// Lets go of the result of the last call before the next: two of them would not fit the cache that holds one.
  template <class Result, class Compute>
  static void replace(Result& result, const Compute& compute) {
    result = Result();
    result = compute();
  }

  /// pass=forward computes `function` unrecorded, pass=recorded records it, pass=backward takes the gradients of a
  /// result recorded before, pass=both records and takes them.
  static Work operation(const Task& task, Tensors leaves, Function function) {
    if (task.is("pass", "forward")) {
      auto result = std::make_shared<Tensor>();
      return {[=] {
                typename L::NoGrad guard;
                replace(*result, function);
              },
              [=](Values& values) { read(values, *result); }};
    }
    for (Tensor& leaf : leaves) L::require_grad(leaf);
    auto result = std::make_shared<Tensor>(function());
    if (task.is("pass", "recorded")) return {[=] { replace(*result, function); }, [=](Values& v) { read(v, *result); }};
    const Tensor gradient = filled(L::shape(*result), 99, -1, 1, L::is_double(*result));
    auto gradients = std::make_shared<Tensors>();
    const auto values = [=](Values& v) { read_all(v, *gradients); };
    if (task.is("pass", "backward"))
      return {[=] { replace(*gradients, [&] { return L::grad(*result, leaves, gradient, true); }); }, values};
    return {[=] { replace(*gradients, [&] { return L::grad(function(), leaves, gradient, false); }); }, values};
  }

  static Work add(const Task& t) {
    const Tensor a = filled({t["n"]}, 1), b = filled({t["n"]}, 2);
    return operation(t, {a}, [=] { return L::add(a, b); });
  }

  static Work mul_rows(const Task& t) {
    const Tensor a = filled({t["rows"], t["columns"]}, 1), b = filled({t["columns"]}, 2);
    return operation(t, {a, b}, [=] { return L::mul(a, b); });
  }

  static Work chain(const Task& t) {
    const Tensor a = filled({1}, 1), b = filled({1}, 2, 0.99, 1.01), gradient = filled({1}, 3);
    L::require_grad(a);
    const std::int64_t ops = t["ops"];
    auto gradients = std::make_shared<Tensors>();
    return {[=] {
              Tensor y = a;
              for (std::int64_t i = 0; i < ops; ++i) y = L::mul(y, b);
              *gradients = L::grad(y, {a}, gradient, false);
            },
            [=](Values& v) { read_all(v, *gradients); }};
  }

  static Work map(const Task& t) {
    const Tensor x = filled({t["n"]}, 1, t.is("f", "log") ? 0.1 : -3, 3);
    for (const auto& [name, function] : L::maps())
      if (t.is("f", name)) return operation(t, {x}, [=, f = function] { return f(x); });
    return {};
  }

  /// A reduction over the middle dimension of [outer, n, inner].
  static Work reduce(const Task& t) {
    const Tensor x = filled({t["outer"], t["n"], t.get("inner", 1)}, 1);
    for (const auto& [name, function] : L::reductions())
      if (t.is("f", name)) return operation(t, {x}, [=, f = function] { return f(x, 1); });
    return {};
  }

  static Work sum_all(const Task& t) {
    const Tensor x = filled({t["n"]}, 1);
    return operation(t, {x}, [=] { return L::sum(x); });
  }

  static Work transpose(const Task& t) {
    const Tensor x = filled({t["n"], t["rows"], t["columns"]}, 1);
    return operation(t, {x}, [=] { return L::transpose(x); });
  }

  /// One of many operations of tensors a, b and c, some with an index into `classes`.
  static Work operation_of(const Task& t) {
    Tensors x;
    for (const char* key : {"a", "b", "c"})
      if (const Extents shape = t.extents(key); !shape.empty())
        x.push_back(filled(shape, std::uint32_t(1 + x.size()), t.get("positive", 0) ? 0.5 : -1,
                           t.get("positive", 0) ? 1.5 : 1));
    const Extents shape = t.extents("index");
    const Tensor index = shape.empty() ? Tensor() : labels(shape, 9, t["classes"]);
    for (const auto& [name, function] : L::operations())
      if (t.is("f", name)) return operation(t, x, [=, f = function] { return f(x, index); });
    return {};
  }

  static Work product(const Task& t) {
    const bool ta = t.get("ta", 0), tb = t.get("tb", 0), is_double = t.get("double", 0);
    const std::int64_t m = t["m"], n = t["n"], k = t["k"];
    const Tensor a = filled(ta ? Extents{k, m} : Extents{m, k}, 1, -1, 1, is_double);
    const Tensor b = filled(tb ? Extents{n, k} : Extents{k, n}, 2, -1, 1, is_double);
    return operation(t, {a, b}, [=] { return L::matmul(a, b, ta, tb); });
  }

  static Work linear(const Task& t) {
    const Tensor x = filled({t["n"], t["in"]}, 1), w = weight({t["out"], t["in"]}, 2), b = weight({t["out"]}, 3);
    return operation(t, {x, w, b}, [=] { return L::linear(x, w, b); });
  }

  static Work conv1d(const Task& t) {
    const std::int64_t c = t["c"], f = t["f"], groups = t.get("groups", 1);
    const Tensor x = filled({t["n"], c, t["l"]}, 1), w = weight({f, c / groups, t["k"]}, 2), b = weight({f}, 3);
    const Strides strides{t.get("s", 1), t["p"], groups};
    return operation(t, {x, w, b}, [=] { return L::conv1d(x, w, b, strides); });
  }

  static Work conv2d(const Task& t) {
    const std::int64_t c = t["c"], f = t["f"], groups = t.get("groups", 1);
    const Tensor x = filled({t["n"], c, t["h"], t["h"]}, 1), w = weight({f, c / groups, t["k"], t["k"]}, 2);
    const Tensor b = weight({f}, 3);
    const Strides strides{t.get("s", 1), t["p"], groups};
    return operation(t, {x, w, b}, [=] { return L::conv2d(x, w, b, strides); });
  }

  static Work conv_transpose(const Task& t, bool two) {
    const std::int64_t c = t["c"], f = t["f"];
    const Tensor x = filled(two ? Extents{t["n"], c, t["h"], t["h"]} : Extents{t["n"], c, t["l"]}, 1);
    const Tensor w = weight(two ? Extents{c, f, t["k"], t["k"]} : Extents{c, f, t["k"]}, 2), b = weight({f}, 3);
    const Strides strides{t["s"], t["p"]};
    return operation(t, {x, w, b}, [=] { return L::conv_transpose(x, w, b, strides); });
  }
  static Work conv_transpose1d(const Task& t) { return conv_transpose(t, false); }
  static Work conv_transpose2d(const Task& t) { return conv_transpose(t, true); }

  /// A pool's windows are read from the task once: that takes as long as a small pool.
  static Windows windows(const Task& t) {
    const std::int64_t kernel = t.get("k", 1);
    return {kernel, t.get("s", kernel), t.get("p", 0), t.get("count", 1) != 0};
  }
  template <Tensor (*kPool)(const Tensor&, const Windows&)>
  static Work pool(const Task& t, const Extents& shape) {
    const Tensor x = filled(shape, 1);
    return operation(t, {x}, [=, w = windows(t)] { return kPool(x, w); });
  }
  template <Tensor (*kPool)(const Tensor&, const Windows&)>
  static Work pool1d(const Task& t) {
    return pool<kPool>(t, {t["n"], t["c"], t["l"]});
  }
  template <Tensor (*kPool)(const Tensor&, const Windows&)>
  static Work pool2d(const Task& t) {
    return pool<kPool>(t, {t["n"], t["c"], t["h"], t["h"]});
  }
  template <Tensor (*kPool)(const Tensor&, std::int64_t)>
  static Work adaptive_pool(const Task& t, const Extents& shape) {
    const Tensor x = filled(shape, 1);
    return operation(t, {x}, [=, outputs = t["o"]] { return kPool(x, outputs); });
  }
  static Work adaptive_avg_pool1d(const Task& t) {
    return adaptive_pool<L::adaptive_avg_pool1d>(t, {t["n"], t["c"], t["l"]});
  }
  static Work adaptive_avg_pool2d(const Task& t) {
    return adaptive_pool<L::adaptive_avg_pool2d>(t, {t["n"], t["c"], t["h"], t["h"]});
  }

  template <Tensor (*kSoftmax)(const Tensor&)>
  static Work softmax(const Task& t) {
    const Tensor x = filled({t["rows"], t["columns"]}, 1, -3, 3);
    return operation(t, {x}, [=] { return kSoftmax(x); });
  }

  static Work cross_entropy(const Task& t) {
    const Tensor x = filled({t["rows"], t["columns"]}, 1, -3, 3), y = labels({t["rows"]}, 2, t["columns"]);
    return operation(t, {x}, [=] { return L::cross_entropy(x, y); });
  }

  static Work layer_norm(const Task& t) {
    const Tensor x = filled({t["rows"], t["columns"]}, 1), w = weight({t["columns"]}, 2), b = weight({t["columns"]}, 3);
    return operation(t, {x, w, b}, [=] { return L::layer_norm(x, w, b); });
  }

  static Work group_norm(const Task& t) {
    const Tensor x = filled({t["n"], t["c"], t["h"], t["h"]}, 1), w = weight({t["c"]}, 2), b = weight({t["c"]}, 3);
    return operation(t, {x, w, b}, [=, groups = t["groups"]] { return L::group_norm(x, groups, w, b); });
  }

  static Work batch_norm(const Task& t) {
    const Tensor x = filled({t["n"], t["c"], t["h"], t["h"]}, 1), w = weight({t["c"]}, 2), b = weight({t["c"]}, 3);
    const Tensor mean = filled({t["c"]}, 4), var = filled({t["c"]}, 5, 0.5, 1.5);
    const bool training = t["training"] != 0;
    return operation(t, {x, w, b}, [=] { return L::batch_norm(x, mean, var, w, b, training); });
  }

  static Work embedding(const Task& t) {
    const Tensor rows = labels({t["n"]}, 1, t["rows"]), w = weight({t["rows"], t["columns"]}, 2);
    return operation(t, {w}, [=] { return L::embedding(rows, w); });
  }

  template <Tensor (*kLayer)(const Tensor&, const Tensors&)>
  static Work recurrent(const Task& t, std::int64_t gates) {
    const std::int64_t in = t["in"], h = t["h"];
    const Tensor x = filled({t["l"], t["n"], in}, 1);
    const Tensors w = {weight({gates * h, in}, 2), weight({gates * h, h}, 3), weight({gates * h}, 4),
                       weight({gates * h}, 5)};
    return operation(t, {x, w[0], w[1], w[2], w[3]}, [=] { return kLayer(x, w); });
  }
  static Work lstm(const Task& t) { return recurrent<L::lstm>(t, 4); }
  static Work gru(const Task& t) { return recurrent<L::gru>(t, 3); }

  static Work attention(const Task& t) {
    const Extents shape = {t["n"], t["heads"], t["l"], t["e"]};
    const Tensor q = filled(shape, 1), k = filled(shape, 2), v = filled(shape, 3);
    return operation(t, {q, k, v}, [=] { return L::attention(q, k, v); });
  }

  /// The update alone, of `count` parameters of `n` elements; gradients are kept away from zero, where the first step
  /// of Adam depends on their last digit.
  static Work optimizer(const Task& t) {
    auto parameters = std::make_shared<Tensors>();
    for (std::int64_t i = 0; i < t.get("count", 1); ++i) {
      const auto seed = std::uint32_t(2 * i);
      parameters->push_back(filled({t["n"]}, 1 + seed));
      L::require_grad(parameters->back());
      L::set_grad(parameters->back(), filled({t["n"]}, 2 + seed, 0.5, 1));
    }
    const std::function<void()> step = L::optimizer(t, *parameters);
    return {step, [=](Values& v) { read_all(v, *parameters); }};
  }

  // --- all of them
  // ----------------------------------------------------------------------------------------------------

  static std::map<std::string, Maker> makers() {
    return {{"add", add},
            {"mul_rows", mul_rows},
            {"chain", chain},
            {"map", map},
            {"reduce", reduce},
            {"sum_all", sum_all},
            {"transpose", transpose},
            {"operation", operation_of},
            {"product", product},
            {"linear", linear},
            {"conv1d", conv1d},
            {"conv2d", conv2d},
            {"conv_transpose1d", conv_transpose1d},
            {"conv_transpose2d", conv_transpose2d},
            {"avg_pool1d", pool1d<L::avg_pool1d>},
            {"avg_pool2d", pool2d<L::avg_pool2d>},
            {"adaptive_avg_pool1d", adaptive_avg_pool1d},
            {"adaptive_avg_pool2d", adaptive_avg_pool2d},
            {"max_pool1d", pool1d<L::max_pool1d>},
            {"max_pool2d", pool2d<L::max_pool2d>},
            {"softmax", softmax<L::softmax>},
            {"log_softmax", softmax<L::log_softmax>},
            {"cross_entropy", cross_entropy},
            {"layer_norm", layer_norm},
            {"group_norm", group_norm},
            {"batch_norm", batch_norm},
            {"embedding", embedding},
            {"lstm", lstm},
            {"gru", gru},
            {"attention", attention},
            {"optimizer", optimizer}};
  }
};

}  // namespace bench
