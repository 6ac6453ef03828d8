#pragma once

#include <span>
#include <vector>

#include "core/node.hpp"

namespace taper::detail {

/// The nodes behind some roots, held by the calling thread as long as this lives. Walks of several threads over shared
/// nodes take turns.
class Walk {
 public:
  /// `wanted` is what becomes of the flag of each node. Errors: `ErrorKind::tape` when a hook walks the graph it is
  /// called from.
  Walk(std::span<Node* const> roots, bool wanted);
  ~Walk();
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  std::span<Node* const> latest_first() const { return nodes_; }
  /// Whether a node that somebody else may know too is one of them.
  bool holds(const Node& node) const { return node.walk.load(std::memory_order_relaxed) == this; }

 private:
  bool collect(std::span<Node* const> roots);
  bool hold(Node* node);
  bool is_active(const Walk* walk) const;
  void append(Node* node);
  void let_go() noexcept;

  std::vector<Node*> nodes_;
  std::vector<Node*> marked_;  ///< those of them that somebody else may know too
  const bool wanted_;
  bool in_order_ = true;                      ///< as they were appended
  std::uint64_t last_position_ = UINT64_MAX;  ///< of the node appended last
  const Walk* const outer_;                   ///< of this thread, when a hook differentiates
};

}  // namespace taper::detail
