/* Gravitation between --bodies bodies, all pairs. */
#include "program.h"
#include <math.h>

struct body { double x, y, z, vx, vy, vz, mass; };
static long bodies;

static void work(struct worker *worker)
{
    struct body *b = calloc((size_t)bodies, sizeof *b);
    for (long i = 0; i < bodies; i++)
        b[i] = (struct body){sin((double)i), cos((double)i * 2), sin((double)i * 3), 0, 0, 0, 1e-6};
    ready(worker);
    while (going(worker)) {
        for (long i = 0; i < bodies && going(worker); i++) {
            double ax = 0, ay = 0, az = 0;
            for (long j = 0; j < bodies; j++) {
                double dx = b[j].x - b[i].x, dy = b[j].y - b[i].y, dz = b[j].z - b[i].z;
                double r2 = dx * dx + dy * dy + dz * dz + 1e-3, f = b[j].mass / (r2 * sqrt(r2));
                ax += f * dx, ay += f * dy, az += f * dz;
            }
            b[i].vx += ax * 0.01, b[i].vy += ay * 0.01, b[i].vz += az * 0.01;
            worker->work += (double)bodies;
        }
        for (long i = 0; i < bodies; i++)
            b[i].x += b[i].vx * 0.01, b[i].y += b[i].vy * 0.01, b[i].z += b[i].vz * 0.01;
    }
    worker->check = isfinite(b[0].x) ? worker->work : 0;
}

int main(int argc, char **argv)
{
    program_start(argc, argv);
    bodies = number("bodies", 1000);
    program_run(work);
}
