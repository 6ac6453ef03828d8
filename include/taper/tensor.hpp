#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "taper/dtype.hpp"
#include "taper/error.hpp"
#include "taper/shape.hpp"
#include "taper/shared.hpp"

#pragma GCC visibility push(default)

namespace taper {

class Tensor;

namespace detail {

struct Node;

/// Counted memory behind one or several tensors; the elements follow this header, 64-byte aligned.
struct alignas(64) Buffer {
  RefCount refs;
  std::uint32_t version = 0;  ///< grows with every change in place
  std::uint32_t history = 0;  ///< grows with every *recorded* change in place
  std::size_t bytes = 0;

  void* data() noexcept { return this + 1; }
};

/// What a `Tensor` handle points to.
struct TensorImpl {
  RefCount refs;
  DType dtype = DType::float32;
  bool is_view = false;       ///< shares the data of a tensor that requires grad
  std::uint32_t history = 0;  ///< the buffer's history that `node` describes
  Buffer* buffer = nullptr;
  Node* node = nullptr;  ///< what produced it, or the leaf's own node; null: requires no gradient
  Shape shape;
};

void destroy(TensorImpl* impl) noexcept;

}  // namespace detail

/// A number of any element type as it is passed to an operation; keeps whether it was written as an integer.
struct Scalar {
  double value;
  bool is_integer;

  Scalar(double v) : value(v), is_integer(false) {}
  Scalar(float v) : value(v), is_integer(false) {}
  Scalar(int v) : value(v), is_integer(true) {}
  Scalar(std::int64_t v) : value(double(v)), is_integer(true) {}
};

/// Dimensions to reduce: one number or a braced list; counted from the back when negative.
class Dims {
 public:
  Dims(int dim) : dims_{dim}, size_(1) {}
  Dims(std::int64_t dim) : dims_{dim}, size_(1) {}
  /// Errors: `ErrorKind::shape` for more than `Shape::kMaxRank` dimensions.
  Dims(std::initializer_list<std::int64_t> dims);

  const std::int64_t* begin() const { return dims_; }
  const std::int64_t* end() const { return dims_ + size_; }
  int size() const { return size_; }

 private:
  std::int64_t dims_[Shape::kMaxRank] = {};
  int size_ = 0;
};

/// A function called with a gradient on its way back; may return another one, or an undefined tensor to keep it.
struct GradientHook {
  virtual ~GradientHook() = default;
  virtual Tensor operator()(const Tensor& gradient) = 0;
};

/// A handle to an n-dimensional array of one element type, contiguous and row-major.
///
/// Copying a handle shares the data. A tensor that an operation produced while recording was on keeps the
/// nodes that produced it alive; dropping the last handle frees them (see `autograd.hpp`).
/// Handles may be copied from several threads; changing one tensor from two threads is a data race.
class Tensor {
 public:
  Tensor() noexcept {}
  Tensor(const Tensor& other) noexcept : impl_(other.impl_) {
    if (impl_) impl_->refs.add();
  }
  Tensor(Tensor&& other) noexcept : impl_(other.impl_) { other.impl_ = nullptr; }
  Tensor& operator=(Tensor other) & noexcept {
    std::swap(impl_, other.impl_);
    return *this;
  }
  ~Tensor() {
    if (impl_ && impl_->refs.drop()) detail::destroy(impl_);
  }

  /// Whether the handle points to a tensor at all.
  bool defined() const noexcept { return impl_ != nullptr; }
  explicit operator bool() const = delete;

  /// All of these need a defined tensor; errors: `ErrorKind::tape`, `tensor: undefined`.
  const Shape& shape() const { return checked().shape; }
  DType dtype() const { return checked().dtype; }
  std::int64_t numel() const { return checked().shape.numel(); }
  std::int64_t dim() const { return checked().shape.rank(); }
  /// Extent of one dimension; negative counts from the back.
  std::int64_t size(std::int64_t dim) const;

  /// Pointer to the first element. Errors: `ErrorKind::type` when `T` is not the element type.
  /// Writing through it is not seen by the version counter.
  template <class T>
  T* data() const {
    return static_cast<T*>(typed_data(dtype_of<T>));
  }
  /// The only element, whatever its type. Errors: `ErrorKind::shape` unless numel() is 1.
  double item() const;
  /// All elements, row-major, converted to `T` (`float`, `double` or `std::int64_t`).
  template <class T>
  std::vector<T> to_vector() const;
  /// PyTorch's printed form: aligned, elided above 1000 elements.
  std::string to_string() const;

  // --- autograd -------------------------------------------------------------------------------------------------

  /// Makes a leaf record (or stop recording) what is computed from it; returns the same tensor.
  /// Errors: `ErrorKind::type` for int64; `ErrorKind::tape` when switching off a tensor that is not a leaf.
  Tensor requires_grad_(bool on = true) const;
  bool requires_grad() const { return checked().node != nullptr; }
  bool is_leaf() const;
  /// The gradient accumulated by `backward`; undefined when there is none. Leaves only, or after `retain_grad`.
  Tensor grad() const;
  /// Replaces the gradient; an undefined tensor drops it. Errors: shape or element type differ.
  void set_grad(const Tensor& gradient) const;
  /// Drops the gradient, so that the next backward writes instead of adding.
  void zero_grad() const { set_grad(Tensor()); }
  /// Keeps the gradient of a tensor that is not a leaf.
  void retain_grad() const;
  /// Computes d this / d leaf for every leaf and adds it to `leaf.grad()`. Without a gradient the tensor must
  /// have one element. Errors: `ErrorKind::tape` (no graph, freed graph, changed saved value), `ErrorKind::shape`.
  void backward(const Tensor& gradient = Tensor(), bool retain_graph = false) const;
  /// Shares data and version counter, records nothing.
  Tensor detach() const;
  /// Calls `hook(gradient)` when this tensor's gradient is complete, before it goes on or into `grad()`.
  /// `hook` takes `const Tensor&` and returns `Tensor` (undefined keeps the gradient) or nothing.
  template <class Hook>
  void register_hook(Hook hook) const;
  /// A name for tapes and error sentences.
  Tensor set_name(const std::string& name) const;

  // --- operations: each is the free function of the same name in `ops.hpp` --------------------------------------

  Tensor clone() const;
  Tensor to(DType dtype) const;
  Tensor reshape(const Shape& shape) const;  ///< one extent may be -1
  Tensor reshape(std::initializer_list<std::int64_t> shape) const;
  Tensor view(std::initializer_list<std::int64_t> shape) const;
  Tensor flatten(std::int64_t start_dim = 0, std::int64_t end_dim = -1) const;
  Tensor squeeze() const;
  Tensor squeeze(std::int64_t dim) const;
  Tensor unsqueeze(std::int64_t dim) const;
  Tensor expand(std::initializer_list<std::int64_t> shape) const;
  Tensor transpose(std::int64_t dim0, std::int64_t dim1) const;
  Tensor permute(std::initializer_list<std::int64_t> dims) const;
  Tensor narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const;
  Tensor select(std::int64_t dim, std::int64_t index) const;
  Tensor index_select(std::int64_t dim, const Tensor& index) const;
  Tensor gather(std::int64_t dim, const Tensor& index) const;

  Tensor sum() const;
  Tensor sum(const Dims& dims, bool keepdim = false) const;
  Tensor mean() const;
  Tensor mean(const Dims& dims, bool keepdim = false) const;
  Tensor var(const Dims& dims, bool keepdim = false) const;
  Tensor std(const Dims& dims, bool keepdim = false) const;
  Tensor max() const;
  Tensor min() const;
  Tensor amax(const Dims& dims, bool keepdim = false) const;
  Tensor amin(const Dims& dims, bool keepdim = false) const;
  Tensor prod() const;
  Tensor argmax() const;
  Tensor argmax(std::int64_t dim, bool keepdim = false) const;
  Tensor argmin() const;
  Tensor argmin(std::int64_t dim, bool keepdim = false) const;
  Tensor logsumexp(const Dims& dims, bool keepdim = false) const;
  Tensor norm() const;
  Tensor softmax(std::int64_t dim) const;
  Tensor log_softmax(std::int64_t dim) const;
  Tensor matmul(const Tensor& other) const;

  Tensor exp() const;
  Tensor log() const;
  Tensor sqrt() const;
  Tensor abs() const;
  Tensor pow(Scalar exponent) const;
  Tensor clamp(std::optional<Scalar> min, std::optional<Scalar> max) const;
  Tensor tanh() const;
  Tensor sigmoid() const;
  Tensor relu() const;

  /// In-place operations change the data, bump the version counter, and are recorded like any other.
  /// Errors: `ErrorKind::tape` on a leaf that requires grad, or a view of a tensor that does, while recording.
  const Tensor& add_(const Tensor& other, Scalar alpha = 1) const;
  const Tensor& add_(Scalar other) const;
  const Tensor& sub_(const Tensor& other) const;
  const Tensor& mul_(const Tensor& other) const;
  const Tensor& mul_(Scalar other) const;
  const Tensor& div_(const Tensor& other) const;
  const Tensor& zero_() const;
  const Tensor& fill_(Scalar value) const;
  const Tensor& copy_(const Tensor& source) const;

  /// For the library itself.
  explicit Tensor(detail::TensorImpl* adopted) noexcept : impl_(adopted) {}
  detail::TensorImpl* impl() const noexcept { return impl_; }

 private:
  const detail::TensorImpl& checked() const {
    if (!impl_) [[unlikely]]
      fail_undefined();
    return *impl_;
  }
  [[noreturn]] static void fail_undefined();
  void* typed_data(DType dtype) const;
  void add_hook(GradientHook* adopted) const;

  detail::TensorImpl* impl_ = nullptr;
};

/// A tensor under a name, as state dicts and files hold it.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

template <class Hook>
void Tensor::register_hook(Hook hook) const {
  struct Held final : GradientHook {
    explicit Held(Hook&& h) : function(std::move(h)) {}
    Tensor operator()(const Tensor& gradient) override {
      if constexpr (requires { Tensor(function(gradient)); }) {
        return function(gradient);
      } else {
        function(gradient);
        return Tensor();
      }
    }
    Hook function;
  };
  add_hook(new Held(std::move(hook)));
}

/// Writes `to_string()`.
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace taper

#pragma GCC visibility pop
