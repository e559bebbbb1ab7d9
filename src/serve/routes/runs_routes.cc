// /v1/heed/runs and /v1/heed/run: training runs, for the page's Train tab.
#include "serve/runs.h"
#include "serve/service.h"

namespace heed::serve {
namespace {

HttpReply list_runs(Call& call) {
  Json data = Json::array();
  const std::string& folder = call.service.options().runs_folder;
  if (!folder.empty()) {
    for (const RunEntry& run : RunsFolder(folder).list()) {
      data.push_back({{"name", run.name},
                      {"kind", run.is_sweep ? "sweep" : "training"},
                      {"updated_at", run.updated_at}});
    }
  }
  return json_reply(
      {{"object", "list"}, {"is_enabled", !folder.empty()}, {"data", std::move(data)}});
}

Json kind_schema() { return schema::choice({"training", "sweep"}); }
Json updated_schema() { return schema::integer("seconds since 1970"); }

Json runs_schema() {
  const Json run = schema::object({{"name", schema::text("path below the folder")},
                                   {"kind", kind_schema()},
                                   {"updated_at", updated_schema()}});
  return schema::object({{"object", schema::choice({"list"})},
                         {"is_enabled", schema::flag("the server was started with --runs")},
                         {"data", schema::list(run)}});
}

struct RunCall {
  std::string name, version;
};
void describe(Fields& fields, RunCall& call) {
  fields.text({.name = "name", .about = "name from /v1/heed/runs", .required = true}, call.name);
  fields.text({.name = "version",
               .about = "version that the caller has; if it is current, the reply is short"},
              call.version);
}

HttpReply read_run(Call& call) {
  const auto request = read_fields<RunCall>(call);
  const std::string& folder = call.service.options().runs_folder;
  const auto run =
      folder.empty() ? std::nullopt : RunsFolder(folder).read(request.name, request.version);
  if (!run) throw HttpError(404, "no such run", "not_found", "name");
  return json_reply(*run);
}

Json run_schema() {
  const Json record = schema::open_object({{"kind", schema::text()}, {"step", schema::integer()}});
  return schema::object(
      {{"name", schema::text()},
       {"version", schema::text("send it with the next request")},
       {"unchanged?", schema::flag("the version is current; no other fields follow")},
       {"kind?", kind_schema()},
       {"updated_at?", updated_schema()},
       {"is_finished?", schema::flag("for a training")},
       {"records?", schema::list(record, "for a training: log.jsonl")},
       {"table?", schema::or_null(schema::map(schema::anything(), "for a sweep: table.json"))}});
}

}  // namespace

void add_runs_routes(std::vector<Route>& routes) {
  routes.push_back({.method = "GET",
                    .path = "/v1/heed/runs",
                    .about = "List the training runs and sweeps of --runs",
                    .replies = {{.schema = runs_schema()}},
                    .handle = list_runs});
  routes.push_back({.method = "POST",
                    .path = "/v1/heed/run",
                    .about = "The log of a training run, or the table of a sweep",
                    .describe = described<RunCall>(),
                    .replies = {{.schema = run_schema()}},
                    .handle = read_run});
}

}  // namespace heed::serve
