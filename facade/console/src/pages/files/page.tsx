export default function Files() {
  return <h1>Files</h1>;
}
