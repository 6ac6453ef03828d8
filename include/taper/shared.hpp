#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace taper {

namespace detail {

/// How many own a block; may be changed from several threads. Written with the compiler's own operations, because
/// <atomic> would cost every user its parsing.
class RefCount {
 public:
  void add() noexcept { __atomic_fetch_add(&owners_, 1u, __ATOMIC_RELAXED); }
  /// Whether the owner that leaves was the last. A single owner reads only: nobody else can change the count, and a
  /// locked change costs as much as half an operation.
  bool drop() noexcept { return is_one() || __atomic_fetch_sub(&owners_, 1u, __ATOMIC_ACQ_REL) == 1; }
  std::uint32_t count() const noexcept { return __atomic_load_n(&owners_, __ATOMIC_ACQUIRE); }
  bool is_one() const noexcept { return count() == 1; }

 private:
  std::uint32_t owners_ = 1;
};

/// What owners of one object share: their number, and in a derived block the object. A function instead of a virtual
/// destructor, because each class would bring a table and names of its type.
struct SharedBlock {
  void (*destroy)(SharedBlock* self);
  RefCount refs{};
};

template <class T>
struct __attribute__((visibility("hidden"))) ObjectBlock : SharedBlock {
  template <class... Arguments>
  explicit ObjectBlock(Arguments&&... arguments)
      : SharedBlock{[](SharedBlock* self) { delete static_cast<ObjectBlock*>(self); }},
        object(std::forward<Arguments>(arguments)...) {}
  T object;
};

}  // namespace detail

/// A handle to an object that lives as long as its last handle; empty at first. It stands for `std::shared_ptr` in
/// this library's headers, where <memory> would be a third of what including them costs.
///
/// Handles may be copied and dropped from several threads. `Shared<void>` owns an object whose type is not said.
template <class T>
class Shared {
 public:
  /// An object made in place from `arguments`, with its first handle.
  template <class... Arguments>
  static Shared make(Arguments&&... arguments) {
    auto* block = new detail::ObjectBlock<T>(std::forward<Arguments>(arguments)...);
    Shared made;
    made.object_ = &block->object;
    made.block_ = block;
    return made;
  }

  Shared() noexcept = default;
  Shared(std::nullptr_t) noexcept {}
  Shared(const Shared& other) noexcept : object_(other.object_), block_(other.block_) {
    if (block_) block_->refs.add();
  }
  Shared(Shared&& other) noexcept : object_(other.object_), block_(other.block_) {
    other.object_ = nullptr;
    other.block_ = nullptr;
  }
  /// From a handle to a derived class, or of any class to `Shared<void>`.
  template <class U, class = std::enable_if_t<std::is_convertible_v<U*, T*>>>
  Shared(Shared<U> other) noexcept : object_(other.object_), block_(other.block_) {
    other.object_ = nullptr;
    other.block_ = nullptr;
  }
  Shared& operator=(Shared other) noexcept {
    std::swap(object_, other.object_);
    std::swap(block_, other.block_);
    return *this;
  }
  ~Shared() {
    if (block_ && block_->refs.drop()) block_->destroy(block_);
  }

  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  std::add_lvalue_reference_t<T> operator*() const noexcept { return *object_; }
  /// A handle to the same object as one of the derived class `U`; empty when it is none.
  template <class U>
  Shared<U> as() const noexcept {
    Shared<U> derived;
    derived.object_ = dynamic_cast<U*>(object_);
    if (!derived.object_) return derived;
    derived.block_ = block_;
    block_->refs.add();
    return derived;
  }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  friend bool operator==(const Shared& a, const Shared& b) noexcept { return a.object_ == b.object_; }

 private:
  template <class U>
  friend class Shared;

  T* object_ = nullptr;
  detail::SharedBlock* block_ = nullptr;
};

}  // namespace taper

#pragma GCC visibility pop
