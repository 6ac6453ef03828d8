#pragma once

#include "framework.hpp"

// Steps of trainings with Adam, written once for all frameworks. Beside what framework.hpp asks for, `L` has
//
//     train_step(...)      one step of a training, by the library's fastest way that is documented
//     swapped(x)           the second and third dimension swapped, as a view where there are views
namespace bench {

template <class L>
struct Models : Framework<L> {
  using Base = Framework<L>;
  using Base::filled;
  using Base::labels;
  using typename Base::Tensor;
  using typename Base::Tensors;

  /// The parameters of a model, numbered as they are made.
  struct Parameters {
    Tensors all;

    Tensor weight(const Extents& shape) {
      all.push_back(Base::weight(shape, std::uint32_t(all.size() + 1)));
      return all.back();
    }
  };

  /// A step that lowers `loss`. Compared are the gradients of the first one.
  static Work training_of(const Tensors& parameters, const typename L::Loss& loss, const Tensor& x,
                          const Tensor& target) {
    for (const Tensor& parameter : parameters) L::require_grad(parameter);
    const std::function<void()> step = L::train_step(parameters, loss, x, target);
    return {step, [=](Values& values) {
              for (const Tensor& parameter : parameters) Base::read(values, L::gradient(parameter));
            }};
  }

  /// The same for a classifier.
  static Work training(const Parameters& parameters, const std::function<Tensor(const Tensor&)>& forward,
                       const Tensor& x, const Tensor& classes) {
    const auto loss = [=](const Tensor& input, const Tensor& target) {
      return L::cross_entropy(forward(input), target);
    };
    return training_of(parameters.all, loss, x, classes);
  }

  // --- layers, made with their parameters: functions of their input
  // ---------------------------------------------------

  using Layer = std::function<Tensor(const Tensor&)>;

  static Layer linear_layer(Parameters& p, std::int64_t in, std::int64_t out) {
    const Tensor w = p.weight({out, in}), b = p.weight({out});
    return [=](const Tensor& x) { return L::linear(x, w, b); };
  }
  static Layer conv1d_layer(Parameters& p, std::int64_t c, std::int64_t f, std::int64_t k, const Strides& s) {
    const Tensor w = p.weight({f, c / s.groups, k}), b = p.weight({f});
    return [=](const Tensor& x) { return L::conv1d(x, w, b, s); };
  }
  static Layer conv2d_layer(Parameters& p, std::int64_t c, std::int64_t f, std::int64_t k, const Strides& s) {
    const Tensor w = p.weight({f, c / s.groups, k, k}), b = p.weight({f});
    return [=](const Tensor& x) { return L::conv2d(x, w, b, s); };
  }
  static Layer conv_transpose_layer(Parameters& p, std::int64_t c, std::int64_t f, std::int64_t k, const Strides& s) {
    const Tensor w = p.weight({c, f, k, k}), b = p.weight({f});
    return [=](const Tensor& x) { return L::conv_transpose(x, w, b, s); };
  }
  static Layer layer_norm_layer(Parameters& p, std::int64_t n) {
    const Tensor w = p.weight({n}), b = p.weight({n});
    return [=](const Tensor& x) { return L::layer_norm(x, w, b); };
  }
  /// A convolution without bias, then batch normalisation in training.
  static Layer normed_conv2d(Parameters& p, std::int64_t c, std::int64_t f, std::int64_t k, const Strides& s) {
    const Tensor w = p.weight({f, c / s.groups, k, k}), gamma = p.weight({f}), beta = p.weight({f});
    const Tensor mean = filled({f}, 4), var = filled({f}, 5, 0.5, 1.5);
    return [=](const Tensor& x) { return L::batch_norm(L::conv2d(x, w, Tensor(), s), mean, var, gamma, beta, true); };
  }

  // --- models
  // ---------------------------------------------------------------------------------------------------------

  static Work forum_step(const Task& t) {
    Parameters p;
    const Layer conv = conv1d_layer(p, 3, 32, 3, {1, 1}), linear = linear_layer(p, 32, 5);
    const auto forward = [=](const Tensor& x) {
      return linear(L::squeeze(L::avg_pool1d(L::relu(conv(x)), Windows{10, 10}), 2));
    };
    return training(p, forward, filled({t["n"], 3, 10}, 5), labels({t["n"]}, 6, 5));
  }

  static Work mlp_step(const Task& t) {
    Parameters p;
    const Layer first = linear_layer(p, 784, 256), second = linear_layer(p, 256, 128), third = linear_layer(p, 128, 10);
    const auto forward = [=](const Tensor& x) { return third(L::relu(second(L::relu(first(x))))); };
    const double size = t.get("denormal", 0) ? 1e-39 : 1;
    L::flush_denormals(t.get("flush", 0) != 0);
    return training(p, forward, filled({t["n"], 784}, 7, -size, size), labels({t["n"]}, 8, 10));
  }

  static Work lenet_step(const Task& t) {
    Parameters p;
    const Layer conv1 = conv2d_layer(p, 1, 6, 5, {1, 2}), conv2 = conv2d_layer(p, 6, 16, 5, {});
    const Layer linear1 = linear_layer(p, 400, 120), linear2 = linear_layer(p, 120, 84);
    const Layer linear3 = linear_layer(p, 84, 10);
    const auto forward = [=](const Tensor& x) {
      const Windows pool{2, 2};
      Tensor y = L::avg_pool2d(L::relu(conv1(x)), pool);
      y = L::flatten(L::avg_pool2d(L::relu(conv2(y)), pool));
      return linear3(L::relu(linear2(L::relu(linear1(y)))));
    };
    return training(p, forward, filled({t["n"], 1, 28, 28}, 11), labels({t["n"]}, 12, 10));
  }

  /// Two residual blocks with batch normalisation; the second halves height and width.
  static Work residual_step(const Task& t) {
    Parameters p;
    const Layer stem = normed_conv2d(p, 3, 16, 3, {1, 1});
    const Layer a1 = normed_conv2d(p, 16, 16, 3, {1, 1}), a2 = normed_conv2d(p, 16, 16, 3, {1, 1});
    const Layer b1 = normed_conv2d(p, 16, 32, 3, {2, 1}), b2 = normed_conv2d(p, 32, 32, 3, {1, 1});
    const Layer shortcut = normed_conv2d(p, 16, 32, 1, {2, 0}), head = linear_layer(p, 32, 10);
    const auto forward = [=](const Tensor& x) {
      Tensor y = L::relu(stem(x));
      y = L::relu(L::add(a2(L::relu(a1(y))), y));
      y = L::relu(L::add(b2(L::relu(b1(y))), shortcut(y)));
      return head(L::flatten(L::adaptive_avg_pool2d(y, 1)));
    };
    return training(p, forward, filled({t["n"], 3, 32, 32}, 7), labels({t["n"]}, 8, 10));
  }

  /// Depthwise convolutions, each followed by one of width 1.
  static Work separable_step(const Task& t) {
    Parameters p;
    const Layer stem = normed_conv2d(p, 3, 16, 3, {2, 1});
    const Layer deep1 = normed_conv2d(p, 16, 16, 3, {1, 1, 16}), wide1 = normed_conv2d(p, 16, 32, 1, {});
    const Layer deep2 = normed_conv2d(p, 32, 32, 3, {2, 1, 32}), wide2 = normed_conv2d(p, 32, 64, 1, {});
    const Layer head = linear_layer(p, 64, 10);
    const auto forward = [=](const Tensor& x) {
      const Tensor y = L::relu(wide1(L::relu(deep1(L::relu(stem(x))))));
      return head(L::flatten(L::adaptive_avg_pool2d(L::relu(wide2(L::relu(deep2(y)))), 1)));
    };
    return training(p, forward, filled({t["n"], 3, 32, 32}, 7), labels({t["n"]}, 8, 10));
  }

  /// Convolutions over time, each dilated twice as much as the one before and added to its input.
  static Work temporal_step(const Task& t) {
    Parameters p;
    const Layer first = conv1d_layer(p, 8, 32, 3, {1, 1});
    std::vector<Layer> dilated;
    for (const std::int64_t dilation : {2, 4, 8})
      dilated.push_back(conv1d_layer(p, 32, 32, 3, {1, dilation, 1, dilation}));
    const Layer head = linear_layer(p, 32, 5);
    const auto forward = [=](const Tensor& x) {
      Tensor y = L::relu(first(x));
      for (const Layer& conv : dilated) y = L::add(y, L::relu(conv(y)));
      return head(L::mean(y, 2));
    };
    return training(p, forward, filled({t["n"], 8, 128}, 7), labels({t["n"]}, 8, 5));
  }

  /// A network over time that halves and doubles its length once, and names a class for each time.
  static Work unet_step(const Task& t) {
    Parameters p;
    const Layer down = conv1d_layer(p, 4, 16, 3, {1, 1}), deep = conv1d_layer(p, 16, 32, 3, {1, 1});
    const Layer up = conv1d_layer(p, 48, 16, 3, {1, 1}), head = conv1d_layer(p, 16, 3, 1, {});
    const auto forward = [=](const Tensor& x) {
      const Tensor y = L::relu(down(x)), z = L::relu(deep(L::max_pool1d(y, Windows{2, 2})));
      return head(L::relu(up(L::cat(y, L::upsample(z)))));
    };
    return training(p, forward, filled({t["n"], 4, 256}, 7), labels({t["n"], 256}, 8, 3));
  }

  static Work autoencoder_step(const Task& t) {
    Parameters p;
    const Layer in1 = conv2d_layer(p, 1, 16, 3, {2, 1}), in2 = conv2d_layer(p, 16, 32, 3, {2, 1});
    const Layer out1 = conv_transpose_layer(p, 32, 16, 4, {2, 1}), out2 = conv_transpose_layer(p, 16, 1, 4, {2, 1});
    const auto loss = [=](const Tensor& x, const Tensor& target) {
      const Tensor code = L::relu(in2(L::relu(in1(x))));
      return L::mse_loss(L::sigmoid(out2(L::relu(out1(code)))), target);
    };
    const Tensor x = filled({t["n"], 1, 28, 28}, 7, 0, 1);
    return training_of(p.all, loss, x, x);
  }

  /// Words to rows, an LSTM over them, a class from its last state.
  static Work words_step(const Task& t) {
    Parameters p;
    const std::int64_t words = 1000, width = 32, state = 64;
    const Tensor rows = p.weight({words, width});
    const Tensors w = {p.weight({4 * state, width}), p.weight({4 * state, state}), p.weight({4 * state}),
                       p.weight({4 * state})};
    const Layer head = linear_layer(p, state, 5);
    const std::int64_t length = t["l"];
    const auto forward = [=](const Tensor& x) {
      return head(L::select(L::lstm(L::embedding(x, rows), w), length - 1));
    };
    return training(p, forward, labels({length, t["n"]}, 7, words), labels({t["n"]}, 8, 5));
  }

  /// A layer of a transformer's encoder.
  static Work transformer_step(const Task& t) {
    Parameters p;
    const std::int64_t words = 1000, width = 64, heads = 4, n = t["n"], length = t["l"];
    const Tensor rows = p.weight({words, width}), positions = p.weight({length, width});
    const Layer query = linear_layer(p, width, width), key = linear_layer(p, width, width);
    const Layer value = linear_layer(p, width, width), joined = linear_layer(p, width, width);
    const Layer norm1 = layer_norm_layer(p, width), norm2 = layer_norm_layer(p, width);
    const Layer wide = linear_layer(p, width, 4 * width), narrow = linear_layer(p, 4 * width, width);
    const Layer head = linear_layer(p, width, 5);
    const auto forward = [=](const Tensor& words_of) {
      const Tensor x = L::add(L::embedding(words_of, rows), positions);
      const auto split = [=](const Tensor& y) { return L::swapped(L::reshape(y, {n, length, heads, width / heads})); };
      const Tensor seen = L::attention(split(query(x)), split(key(x)), split(value(x)));
      const Tensor y = norm1(L::add(x, joined(L::reshape(L::swapped(seen), {n, length, width}))));
      return head(L::mean(norm2(L::add(y, narrow(L::gelu(wide(y))))), 1));
    };
    return training(p, forward, labels({n, length}, 7, words), labels({n}, 8, 5));
  }
};

/// All tasks of a framework.
template <class L>
std::map<std::string, Maker> all_makers() {
  using M = Models<L>;
  std::map<std::string, Maker> out = {{"forum_step", M::forum_step},         {"mlp_step", M::mlp_step},
                                      {"lenet_step", M::lenet_step},         {"residual_step", M::residual_step},
                                      {"separable_step", M::separable_step}, {"temporal_step", M::temporal_step},
                                      {"unet_step", M::unet_step},           {"autoencoder_step", M::autoencoder_step},
                                      {"words_step", M::words_step},         {"transformer_step", M::transformer_step}};
  out.merge(M::makers());
  return out;
}

}  // namespace bench
