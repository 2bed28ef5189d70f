// Draws every figure of the page: a <figure data-figure> holds its description as JSON and an empty place for it.
(() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const named = { muted: "muted", ink: "ink" };
  const own = (value) => {
    // "muted" and "ink" in a description stand for the page's own colours.
    if (Array.isArray(value)) return value.map(own);
    if (value && typeof value === "object") {
      return Object.fromEntries(
        Object.entries(value).map(([key, inner]) => [key, key === "color" && inner in named ? colour(inner) : own(inner)]),
      );
    }
    return value;
  };
  const axis = (given) => ({
    gridcolor: colour("grid"), linecolor: colour("grid"), zerolinecolor: colour("grid"), automargin: true,
    ...given, title: { ...(given || {}).title, font: { size: 12 } },
  });
  const draw = (figure) => {
    const { data, layout } = JSON.parse(figure.querySelector("script").textContent);
    const place = figure.querySelector(".plot");
    const narrow = place.clientWidth < 520;
    Plotly.react(place, own(data), {
      ...layout,
      height: narrow ? Math.min(layout.height, 340) : layout.height,
      margin: { l: 52, r: 12, t: 12, b: 48 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colour("ink"), family: getComputedStyle(document.body).fontFamily, size: 12 },
      hoverlabel: { bgcolor: colour("paper"), bordercolor: colour("muted"), font: { color: colour("ink") } },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
      xaxis: axis(layout.xaxis), yaxis: axis(layout.yaxis),
    }, { responsive: true, displaylogo: false, displayModeBar: false });
  };
  const all = () => document.querySelectorAll("figure[data-figure]").forEach(draw);
  document.addEventListener("DOMContentLoaded", all);
  document.addEventListener("earmark:theme", all);
})();
