-- The request comes from a file: lines of headers, an empty line, the body. The figures go out as one line of JSON.

function init(arguments)
  local file = assert(io.open(arguments[1], "rb"))
  for line in file:lines() do
    if line == "" then break end
    local name, value = line:match("^([^:]+): (.*)$")
    wrk.headers[name] = value
  end
  wrk.method = "POST"
  wrk.body = file:read("*a")
  file:close()
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"microseconds":%d,"bytes":%d,"refused":%d,"broken":%d,"p50":%d,"p99":%d}\n',
    summary.requests, summary.duration, summary.bytes, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
