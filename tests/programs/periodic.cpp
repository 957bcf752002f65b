// periodic.cpp - complex periodic systems along the first axis of an array, in C++.
#include <complex>
#include <cstdio>
#include <vector>

#include <pysolvers_api.h>

using complex = std::complex<double>;

int main()
{
    const int64_t rows = 33, columns = 5;
    std::vector<complex> matrix[3], rhs(rows * columns), x(rows * columns);

    for (int k = 0; k < 3; k++) {
        for (int64_t e = 0; e < rows * columns; e++) {
            matrix[k].push_back(complex(0.3 * k + 0.01 * (e % 7), 0.1 * (e % 5) - 0.2) +
                                (k == 1 ? 3.0 : 0.0));
        }
    }
    for (int64_t e = 0; e < rows * columns; e++) {
        rhs[e] = complex(double(e % 11), double(e % 3));
    }
    auto in = [&](const std::vector<complex> &a) {
        return pysolvers_input{a.data(), columns, 0, 1};
    };
    pysolvers_systems systems = {};
    systems.dtype = PYSOLVERS_C128;
    systems.flags = PYSOLVERS_PERIODIC;
    systems.rows = rows;
    systems.outer = 1;
    systems.inner = columns;
    systems.lower = in(matrix[0]);
    systems.diag = in(matrix[1]);
    systems.upper = in(matrix[2]);
    systems.rhs = in(rhs);
    systems.x = pysolvers_output{x.data(), columns, 0, 1};
    const pysolvers_options options = {PYSOLVERS_PIVOT_ALWAYS, 2};
    const pysolvers_status status = pysolvers_solve(&systems, &options);
    double residual = 0;

    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < columns; k++) {
            const auto at = [&](int64_t row) { return ((row + rows) % rows) * columns + k; };
            const complex left = matrix[0][at(i)] * x[at(i - 1)] + matrix[1][at(i)] * x[at(i)] +
                                 matrix[2][at(i)] * x[at(i + 1)];

            residual = std::max(residual, std::abs(left - rhs[at(i)]));
        }
    }
    std::printf("status %d, residual %.3e\n", int(status), residual);
    systems.x.row = 0;
    const pysolvers_status repeated = pysolvers_solve(&systems, nullptr);
    std::printf("%s\n", pysolvers_status_text(repeated));
    return 0;
}
