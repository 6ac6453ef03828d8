#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/node.hpp"

namespace taper::detail {

/// Memory that grows and never moves, for what the commands of a plan point to.
class Pool {
 public:
  void* allocate(std::size_t bytes);
  template <class T>
  T* copy(const T* from, std::size_t n) {
    T* to = static_cast<T*>(allocate(n * sizeof(T)));
    std::copy(from, from + n, to);
    return to;
  }

 private:
  static constexpr std::size_t kChunk = 16384;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::size_t left_ = 0;
  std::byte* next_ = nullptr;
};

/// Where an array of a plan lives.
enum class Home : std::uint8_t {
  block,     ///< only inside the step, in the plan's block
  constant,  ///< made inside the step without an operation
  external,  ///< made before the step: parameters, buffers of modules, data
  input,
  output,
  gradient,  ///< of a leaf
};

/// One array that the commands of a plan read or write.
struct PlanArray {
  Home home = Home::block;
  std::uint32_t number = 0;  ///< of the inputs, outputs, gradients, ...
  std::size_t bytes = 0;
  std::int64_t first = 0, last = 0;  ///< commands that touch it
  std::size_t offset = 0;            ///< in the block
  Buffer* buffer = nullptr;          ///< counted for constants and externals
  std::uint32_t changes = 0;         ///< how much a replay adds to its version
  std::vector<void**> places;        ///< the pointers to it in the commands' arguments
};

/// One call of a replay.
struct Command {
  enum class Kind : std::uint8_t { forward, backward, other } kind;
  union {
    autograd::Op::Forward forward;
    autograd::Op::Backward backward;
    void (*other)(void*);
  };
  void* arguments;
};

/// What `Plan::to_string` says of a command.
struct CommandText {
  std::string name;
  struct Use {
    std::uint32_t array;
    bool is_written;
    Shape shape;
  };
  std::vector<Use> uses;
};

/// What a replay must find as it was when the plan was made.
struct InputForm {
  Shape shape;
  DType dtype;
  std::size_t twin;  ///< the first input with the same memory
};

/// A leaf whose gradient the step uses, and the places of its gradients.
struct PlanLeaf {
  enum class Expects : std::uint8_t { nothing, undefined, defined };

  Node* node;  ///< counted
  Expects expects = Expects::nothing;
  std::uint32_t array = 0;  ///< of the gradient that is expected
  void* current = nullptr;
};

/// A gradient that the step gives a leaf.
struct PlanGradient {
  PlanLeaf* leaf;
  std::uint32_t array;
  Tensor tensor;
};

/// A tensor that the step returns.
struct PlanOutput {
  static constexpr std::size_t kNone = std::size_t(-1);

  std::size_t array = kNone;  ///< that a replay writes; none: the tensor stays, or it is an input
  std::size_t input = kNone;
  Shape shape;
};

/// A recorded step: what `Plan` shows and `CapturedStep` replays. The recorder fills it in.
class FrozenPlan {
 public:
  FrozenPlan() = default;
  ~FrozenPlan();
  FrozenPlan(const FrozenPlan&) = delete;
  FrozenPlan& operator=(const FrozenPlan&) = delete;

  /// Whether a replay with `inputs` would do what the step does.
  bool fits(std::span<const autograd::Input> inputs) const;
  const std::vector<Tensor>& replay(std::span<const autograd::Input> inputs);

  /// Puts `inputs` where the results are inputs.
  void return_inputs(std::span<const autograd::Input> inputs);

  std::size_t size() const { return commands.size(); }
  std::size_t bytes() const { return block_bytes; }
  std::size_t lower_bound_bytes() const { return needed_bytes; }
  std::size_t constant_bytes() const;
  std::string to_string() const;

  /// Plans the block of what lives only inside the step. The first replay takes its memory.
  void place_arrays();

  Pool pool;
  std::vector<PlanArray> arrays;
  std::vector<Command> commands;
  std::vector<CommandText> texts;
  std::vector<InputForm> inputs;
  std::vector<std::uint32_t> input_arrays;
  std::vector<void*> input_pointers;
  std::deque<PlanLeaf> leaves;         // never move
  std::deque<PlanGradient> gradients;  // never move
  std::vector<PlanOutput> outputs;
  std::vector<Tensor> results;
  std::vector<std::uint32_t> changed;               ///< arrays whose versions grow
  std::vector<std::pair<Tensor, Node*>> externals;  ///< tensors, and whether and as what they were differentiated
  std::uint64_t modules = 0;                        ///< `module_state` of the recording
  bool grad_enabled = true;

 private:
  std::vector<PlanArray*> find_places();
  void make_block();
  void point(PlanArray& array, void* to);
  void renew_results();
  void count_changes();

  Buffer* block = nullptr;
  std::size_t block_bytes = 0, needed_bytes = 0;
};

/// Makes `gradient` the leaf's; a command.
void install_gradient(void* gradient);
/// Drops a leaf's gradient; a command.
void drop_gradient(void* leaf);

}  // namespace taper::detail
