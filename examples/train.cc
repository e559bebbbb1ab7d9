// Trains a model and prints a line for each step.   train recipe.toml runs/mine
#include <heed/error.h>
#include <heed/train.h>

#include <cstdio>

int main(int argc, char** argv) try {
  if (argc != 3) return std::fputs("train RECIPE OUT\n", stderr), 2;
  heed::TrainOptions options{.recipe = argv[1], .out = argv[2]};
  options.progress = [](const heed::TrainProgress& progress) {
    std::printf("step %lld: loss %.3f\n", static_cast<long long>(progress.step), progress.loss);
  };
  heed::train(options);
} catch (const heed::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
