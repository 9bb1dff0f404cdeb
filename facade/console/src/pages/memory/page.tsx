export default function Memory() {
  return <h1>Memory</h1>;
}
