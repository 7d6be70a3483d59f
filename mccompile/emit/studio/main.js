// Draws everything, and anew what depends on the width.
function drawAll() {
  drawHead();
  drawAnswers();
  drawFigures();
  drawMemory();
  drawTimeline();
  drawLayers();
  drawPlans();
  drawChanges();
  drawMore();
  emptyDetail();
}

let drawnFor = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === drawnFor) return;
  drawnFor = window.innerWidth;
  hideDetail();
  drawMemory();
  drawTimeline();
  drawLayers();
  drawPlans();
});
drawAll();
