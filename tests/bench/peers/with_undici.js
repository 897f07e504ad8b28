// Node's undici, measured as the other peers are: URL WIDTH REQUESTS
const { Pool } = require('undici')

const [url, width, count] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]
const { origin, pathname } = new URL(url)
const pool = new Pool(origin, { connections: width })

async function run (count) {
  let left = count
  const lane = async () => {
    while (left-- > 0) {
      const { statusCode, headers, body } = await pool.request({ path: pathname, method: 'GET' })
      const text = await body.text()
      if (statusCode !== 200 || !headers['content-type'] || !text) {
        throw new Error('a request was not answered as it should be')
      }
    }
  }
  await Promise.all(Array.from({ length: width }, lane))
}

async function main () {
  await run(2000) // the compiler, too, has to warm up
  const before = process.cpuUsage()
  const begun = process.hrtime.bigint()
  await run(count)
  const spent = process.cpuUsage(before)
  const seconds = Number(process.hrtime.bigint() - begun) / 1e9
  console.log(JSON.stringify({
    requests: count,
    cpu_us: (spent.user + spent.system) / count,
    per_second: Math.round(count / seconds)
  }))
  await pool.close()
}

main()
