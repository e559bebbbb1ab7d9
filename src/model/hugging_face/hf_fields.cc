#include "model/hugging_face/hf_fields.h"

namespace heed {

std::string HfFields::activation_name(Activation activation) {
  const kernels::ActivationInfo& info = kernels::kActivations[static_cast<int>(activation)];
  return info.hugging_face[0].empty() ? "linear" : std::string(info.hugging_face[0]);
}

std::string HfFields::read_activation(const Json& json, Activation& field) {
  std::string choices;
  for (const kernels::ActivationInfo& info : kernels::kActivations) {
    for (const std::string_view name : info.hugging_face) {
      if (name.empty()) continue;
      if (json.is_string() && json.get<std::string>() == name) {
        field = info.activation;
        return {};
      }
      choices += (choices.empty() ? "one of " : ", ") + std::string(name);
    }
  }
  return choices;
}

const Json* HfFields::find(const std::string& key) {
  read_.insert(key);
  const auto found = json_.find(key);
  return found == json_.end() ? nullptr : &*found;
}

void HfFields::id(const char* key, int& field, int fallback) {
  if (!reading_) {
    // Null where an absent key would mean the class's default.
    if (field >= 0 || fallback >= 0) json_[key] = field >= 0 ? Json(field) : Json();
    return;
  }
  const Json* found = find(key);
  if (found && found->is_array() && !found->empty()) found = &found->front();
  field = found ? -1 : fallback;
  if (!found || found->is_null()) return;
  const std::string expected = read_value(*found, field);
  if (!expected.empty()) unsupported(key, *found, expected);
}

void HfFields::dropout(const char* key, std::initializer_list<float*> fields, float fallback) {
  float probability = **fields.begin();
  value({key}, probability, fallback);
  if (!reading_) return;
  for (float* field : fields) *field = probability;
}

void HfFields::expect(const char* key, const Json& supported) {
  if (!reading_) return;
  const Json* found = find(key);
  if (found && !found->is_null() && *found != supported) {
    unsupported(key, *found, supported.dump());
  }
}

void HfFields::unsupported(const std::string& key, const Json& found,
                           const std::string& supported) {
  std::string text = found.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  constexpr size_t kLongest = 60;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "…";
  problems_.push_back(key + " is " + text + ", supported: " + supported);
}

std::vector<std::string> HfFields::unread() const {
  std::vector<std::string> keys;
  for (const auto& [key, unused] : json_.items()) {
    if (!read_.contains(key)) keys.push_back(key);
  }
  return keys;
}

}  // namespace heed
