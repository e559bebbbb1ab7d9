// Where the library's messages go: to the sink its user gave, or nowhere. The library never prints.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

namespace heed {

enum class LogLevel { debug, info, warning };

// May be called from several threads at once.
using LogSink = std::function<void(LogLevel level, std::string_view message)>;

class Log {
 public:
  Log() = default;
  explicit Log(LogSink sink) : sink_(std::move(sink)) {}

  void debug(std::string_view message) const { write(LogLevel::debug, message); }
  void info(std::string_view message) const { write(LogLevel::info, message); }
  void warning(std::string_view message) const { write(LogLevel::warning, message); }

 private:
  void write(LogLevel level, std::string_view message) const {
    if (sink_) sink_(level, message);
  }
  LogSink sink_;
};

}  // namespace heed
