#include "core/walk.hpp"

#include <algorithm>
#include <thread>

#include "base/fail.hpp"

namespace taper::detail {

namespace {

// Lists of the last walk, so that the next one need not allocate: new memory takes longer than a walk over its nodes.
constexpr std::size_t kKeptCapacity = std::size_t{1} << 20;
thread_local std::vector<Node*> kept_nodes, kept_marked;
constinit thread_local const Walk* innermost = nullptr;

}  // namespace

Walk::Walk(std::span<Node* const> roots, bool wanted)
    : nodes_(std::exchange(kept_nodes, {})),
      marked_(std::exchange(kept_marked, {})),
      wanted_(wanted),
      outer_(innermost) {
  while (!collect(roots)) {  // another thread differentiates a part of this graph: after it
    let_go();
    std::this_thread::yield();
  }
  innermost = this;
  const auto later = [](const Node* a, const Node* b) { return a->position > b->position; };
  if (!in_order_) std::sort(nodes_.begin(), nodes_.end(), later);
}

Walk::~Walk() {
  let_go();
  innermost = outer_;
  if (nodes_.capacity() <= kKeptCapacity) kept_nodes = std::move(nodes_);
  if (marked_.capacity() <= kKeptCapacity) kept_marked = std::move(marked_);
}

inline void Walk::append(Node* node) {
  in_order_ &= node->position < last_position_;
  last_position_ = node->position;
  node->wanted = wanted_;
  if (node->target) node->target = false;
  nodes_.push_back(node);
}

/// False when another walk holds one of the nodes.
bool Walk::collect(std::span<Node* const> roots) {
  for (Node* root : roots)
    if (!hold(root)) return false;
  // The list is its own queue: what is in it is held, what it reaches is appended.
  for (std::size_t next = 0; next < nodes_.size(); ++next)
    for (const NodeOperand& input : nodes_[next]->inputs()) {
      if (!input.producer) continue;
      // The only owner of a node is the consumer that led here: no other way leads to it, and nothing is to be marked.
      if (input.producer->refs.is_one())
        append(input.producer);
      else if (!hold(input.producer))
        return false;
    }
  return true;
}

/// Marks `node` and appends it, unless it is marked already. False when another thread's walk holds it.
bool Walk::hold(Node* node) {
  const Walk* holder = nullptr;
  if (node->walk.compare_exchange_strong(holder, this, std::memory_order_acquire)) {
    marked_.push_back(node);
    append(node);
    return true;
  }
  if (holder == this) return true;
  if (is_active(holder)) {
    let_go();
    fail(ErrorKind::tape,
         "backward: called from a hook on a graph that is being differentiated: expected another graph, "
         "got op ",
         node->op->name);
  }
  return false;
}

bool Walk::is_active(const Walk* walk) const {
  const Walk* active = innermost;
  while (active && active != walk) active = active->outer_;
  return active != nullptr;
}

void Walk::let_go() noexcept {
  for (Node* node : marked_) node->walk.store(nullptr, std::memory_order_release);
  marked_.clear();
  nodes_.clear();
  in_order_ = true;
  last_position_ = UINT64_MAX;
}

}  // namespace taper::detail
